import Foundation
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

/// Counts the bytes that a sequence has produced.
private final class Production: Sendable {
    private let count = Monitor(0)
    var value: Int { count.withLock { $0 } }
    func add(_ number: Int) { count.withLock { $0 += number } }
}

private struct ProducerError: Error, Equatable {}

@Suite("Client: uploads from sequences") struct SequenceSourceTests {
    private let bytes = sampleBytes(300_000)
    private let request = TransferRequest("https://files.example/a", method: .put)

    /// A sequence that produces `bytes` in chunks of `size` bytes, and then throws `error`, if there is one.
    private func chunks(
        of bytes: [UInt8], size: Int, _ production: Production? = nil, error: (any Error)? = nil
    ) -> AsyncThrowingStream<[UInt8], any Error> {
        let position = Monitor(0)
        return AsyncThrowingStream {
            let chunk = position.withLock { position in
                defer { position += size }
                return Array(bytes.dropFirst(position).prefix(size))
            }
            production?.add(chunk.count)
            if chunk.isEmpty, let error { throw error }
            return chunk.isEmpty ? nil : chunk
        }
    }

    private func directory() throws -> TemporaryDirectory { try TemporaryDirectory() }

    @Test(
        "chunks of any size are uploaded although the connection is lost at many positions",
        arguments: [1, 1000, 65_536, 300_000])
    func chunks(size: Int) async throws {
        let bytes = size == 1 ? Array(bytes.prefix(20_000)) : bytes
        let server = MockUpload()
        let fixture = try MockFixture { request in
            try await server.response(to: request, cutAt: request.method == .head ? nil : 33_333)
        }
        let upload = fixture.client.upload(request, from: chunks(of: bytes, size: size))
        let result = try await upload.value()
        #expect(result.status == .created && server.bytes == bytes)
        #expect(upload.progress.totalUnitCount == Int64(bytes.count))
        // No temporary file of the sequence remains.
        #expect(fixture.storedNames.isEmpty)
    }

    @Test("single bytes and chunks keep their order in the buffer")
    func mixture() throws {
        let buffer = SequenceBuffer(FilePath(try directory().path))
        _ = try buffer.append(1)
        _ = try ([2, 3] as [UInt8]).withUnsafeBytes { try buffer.append($0) }
        _ = try buffer.append(4)
        buffer.end()
        var bytes: [UInt8] = Array(repeating: 0, count: 8)
        let count = try bytes.withUnsafeMutableBytes { try buffer.read(into: $0, at: 0) {} }
        #expect(count == 4 && bytes.prefix(4) == [1, 2, 3, 4])
        buffer.close()
    }

    @Test("a sequence of single bytes is uploaded")
    func singleBytes() async throws {
        let server = MockUpload()
        let fixture = try MockFixture { try await server.response(to: $0, cutAt: $0.number == 1 ? 100_000 : nil) }
        let all = bytes
        let stream = AsyncStream<UInt8> { continuation in
            for byte in all { continuation.yield(byte) }
            continuation.finish()
        }
        _ = try await fixture.client.upload(request, from: stream).value()
        #expect(server.bytes == bytes)
    }

    @Test(
        "a byte that the sequence has produced is sent before the sequence produces the next byte",
        arguments: [true, false])
    func slowSequence(isOfBytes: Bool) async throws {
        let arrivedCount = Monitor(0)
        let fixture = try MockFixture { request in
            try request.sendInterim(
                .uploadResumptionSupported, ["Upload-Draft-Interop-Version": "8", "Location": "/u/1"])
            var content: [UInt8] = []
            while case let byte = try await request.readContent(atMost: 1), !byte.isEmpty {
                content += byte
                arrivedCount.withLock { $0 += 1 }
                arrivedCount.notifyAll()
            }
            return MockResponse(content == [1, 2, 3] ? .created : .badRequest, ["Upload-Complete": "?1"])
        }
        // The sequence produces each byte after the previous byte has arrived at the server.
        let given = Monitor<UInt8>(0)
        let next: @Sendable () async throws -> UInt8? = {
            let number = given.withLock { $0 }
            try await onThread { arrivedCount.waitForever { $0 >= Int(number) ? () : nil } }
            given.withLock { $0 += 1 }
            return number < 3 ? number + 1 : nil
        }
        let upload =
            isOfBytes
            ? fixture.client.upload(request, from: AsyncThrowingStream(unfolding: next))
            : fixture.client.upload(request, from: AsyncThrowingStream { try await next().map { [$0] } })
        #expect(try await upload.value().status == .created)
    }

    @Test(
        "an error of the sequence ends the upload after all earlier bytes, and the upload resource is deleted")
    func error() async throws {
        let server = MockUpload()
        let fixture = try MockFixture { try await server.response(to: $0) }
        let upload = fixture.client.upload(
            request, from: chunks(of: bytes, size: 1000, error: ProducerError()))
        let error = await transferError { _ = try await upload.value() }
        #expect(error?.code == .sourceUnavailable && error?.underlying as? ProducerError == ProducerError())
        #expect(error?.resumeData == nil && fixture.requests.last?.method == .delete)
        #expect(fixture.storedNames.isEmpty)
    }

    @Test("the sequence is read ahead by at most the window and one chunk, and only after the upload was started")
    func backPressure() async throws {
        let size = 1 << 20
        let production = Production()
        let leads = Monitor<[Int]>([])
        let window = Int(SequenceBuffer.window)
        let fixture = try MockFixture { request in
            try request.sendInterim(
                .uploadResumptionSupported, ["Upload-Draft-Interop-Version": "8", "Location": "/u/1"])
            var read = 0
            while case let part = try await request.readContent(atMost: 3_000_000), !part.isEmpty {
                read += part.count
                let end = read
                // The iteration continues until the window is full or the sequence ends.
                try await onThread {
                    let isFull = pollUntil(within: .seconds(60)) {
                        production.value >= min(end + window - (64 << 10), 32 << 20) ? true : nil
                    }
                    #expect(isFull == true)
                }
                leads.withLock { $0.append(production.value - end) }
            }
            return MockResponse(.created, ["Upload-Complete": "?1"])
        }
        let upload = fixture.client.upload(
            request, from: chunks(of: [UInt8](repeating: 7, count: 32 << 20), size: size, production))
        #expect(production.value == 0)
        _ = try await upload.value()
        let largest = leads.withLock { $0.max() ?? 0 }
        // The last read may have begun in the middle of a portion of 64 KiB.
        #expect(largest <= window + size + (64 << 10), "\(largest)")
    }

    @Test("the disk space of acknowledged bytes is freed, and these bytes cannot be read again")
    func freedSpace() async throws {
        let directory = try directory()
        let buffer = SequenceBuffer(FilePath(directory.path))
        let mib = [UInt8](repeating: 7, count: 1 << 20)
        for _ in 0..<4 { _ = try mib.withUnsafeBytes { try buffer.append($0) } }
        buffer.release(upTo: 3 << 20)
        var byte: [UInt8] = [0]
        #expect(throws: SourceError.unavailable(at: 100)) {
            try byte.withUnsafeMutableBytes { try buffer.read(into: $0, at: 100) {} }
        }
        let count = try byte.withUnsafeMutableBytes { try buffer.read(into: $0, at: 3 << 20) {} }
        #expect(count == 1 && byte == [7])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
        let file = try FileDescriptor.open(directory.path + "/file", [.readWrite, .create])
        try file.write(mib, at: 0)
        try file.punchHole(at: 0, count: 1 << 19)
        let content = try file.content(atMost: 1 << 20)
        #expect(content.prefix(1 << 19).allSatisfy { $0 == 0 } && content.suffix(1 << 19).allSatisfy { $0 == 7 })
        #expect(content.count == 1 << 20)
    }

    @Test("the closure of a reader is called when its byte exists, or when the sequence ends or fails before that byte")
    func readers() async throws {
        for ending in 0..<3 {
            let directory = try directory()
            let buffer = SequenceBuffer(FilePath(directory.path))
            let callCount = Monitor(0)
            #expect(!buffer.isReadable(at: 2) { callCount.withLock { $0 += 1 } })
            _ = try [UInt8](repeating: 1, count: 2).withUnsafeBytes { try buffer.append($0) }
            #expect(callCount.withLock { $0 } == 0)
            switch ending {
            case 0: _ = try [UInt8(3)].withUnsafeBytes { try buffer.append($0) }
            case 1: buffer.end()
            default: buffer.end(ProducerError())
            }
            #expect(callCount.withLock { $0 } == 1 && buffer.isReadable(at: 2) {})
            #expect(buffer.length == (ending == 1 ? 2 : nil))
        }
    }

    @Test("after a pause the same source resumes the upload, and no byte of the sequence is produced twice")
    func pause() async throws {
        let server = MockUpload()
        let production = Production()
        let (isCut, cut) = AsyncStream.makeStream(of: Void.self)
        let fixture = try MockFixture { request in
            guard request.number == 2 else {
                return try await server.response(to: request, cutAt: request.number == 1 ? 100_000 : nil)
            }
            cut.finish()
            try await Task.sleep(for: .seconds(3600))
            return MockResponse(.ok)
        }
        let source = SequenceSource(
            chunks(of: bytes, size: 1000, production), directory: fixture.directory.path + "/storage")
        let upload = fixture.client.upload(request, from: source)
        upload.start()
        for await _ in isCut {}
        let data = try #require(await upload.pause())
        _ = try await fixture.client.resumeUpload(data, from: source).value()
        #expect(server.bytes == bytes && production.value == 300_000)
    }

    @Test("a new source of the same bytes resumes the upload: the bytes that the server has are skipped")
    func newSource() async throws {
        let server = MockUpload()
        let fixture = try MockFixture {
            $0.retry.maxRetriesWithoutProgress = 0
        } answer: { request in
            try await server.response(to: request, cutAt: request.number == 1 ? 123_456 : nil)
        }
        let upload = fixture.client.upload(request, from: chunks(of: bytes, size: 1000))
        let error = await transferError { _ = try await upload.value() }
        let data = try #require(error?.resumeData)
        let source = SequenceSource(chunks(of: bytes, size: 777), directory: fixture.directory.path + "/storage")
        _ = try await fixture.client.resumeUpload(data, from: source).value()
        #expect(server.bytes == bytes)
    }

    @Test("a read without a transfer waits for the bytes")
    func blockingRead() async throws {
        let directory = try directory()
        let source = SequenceSource(chunks(of: [1, 2, 3], size: 2), directory: directory.path)
        #expect(try await onThread { try Self.readBlocking(source) } == [1, 2, 3])
    }

    private static func readBlocking(_ source: SequenceSource) throws -> [UInt8] {
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 2)
        while case let count = try buffer.withUnsafeMutableBytes({ try source.read(into: $0, at: Int64(result.count)) }),
            count > 0
        {
            result += buffer[..<count]
        }
        return result
    }

    @Test("the iteration of the sequence ends when the upload or its source is released or closed")
    func release() async throws {
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let fixture = try MockFixture { _ in MockResponse(.forbidden) }
        let stream = AsyncThrowingStream<[UInt8], any Error> { continuation in
            continuation.yield([1])
            continuation.onTermination = { _ in end.finish() }
        }
        do {
            let upload = fixture.client.upload(request, from: stream)
            let error = await transferError { _ = try await upload.value() }
            #expect(error?.code == .unauthorized)
        }
        let source = SequenceSource(stream, directory: fixture.directory.path + "/storage")
        _ = source.isReadable(at: 5) {}
        source.close()
        for await _ in ended {}
    }

    @Test("an upload fails if the storage directory cannot be used, and its error contains the reason")
    func unusableDirectory() async throws {
        let fixture = try MockFixture {
            $0.storageDirectory = "/proc/nothing"
        } answer: { request in
            _ = try await request.readContent()
            return MockResponse(.ok)
        }
        let error = await transferError {
            _ = try await fixture.client.upload(request, from: chunks(of: bytes, size: 10)).value()
        }
        #expect(error?.code == .sourceUnavailable)
        #expect((error?.underlying as? TransferError)?.code == .storageUnusable)
    }
}
