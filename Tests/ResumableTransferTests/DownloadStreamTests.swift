import Digests
import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import Testing

@Suite("Client: downloads to memory") struct DownloadStreamTests {
    private let bytes = sampleBytes(300_000)
    private let request = TransferRequest("https://files.example/a")

    private func digestField(_ bytes: [UInt8]) -> String {
        var digest = RunningDigest(.sha256)
        bytes.withUnsafeBytes { digest.update($0) }
        return "sha-256=:\(Data(digest.finalized()).base64EncodedString()):"
    }

    private func collect(_ stream: DownloadStream) async throws -> Data {
        var data = Data()
        for try await chunk in stream { data += chunk }
        return data
    }

    @Test("data of exactly the maximum size is returned; one byte more is an error, with or without Content-Length")
    func maxSize() async throws {
        let file = MockFile(bytes: bytes)
        for fields in [[:], ["Transfer-Encoding": "chunked"]] as [Fields] {
            let fixture = try MockFixture { request in
                var response = file.response(to: request)
                for field in fields { response.fields.append(field.name, field.value) }
                return response
            }
            let (data, response) = try await fixture.client.data(for: request, maxSize: 300_000)
            #expect(data == Data(bytes) && response.status == .ok && response.fields["ETag"] == "\"one\"")
            let error = await transferError {
                _ = try await fixture.client.data(for: request, maxSize: 299_999)
            }
            #expect(error?.code == .tooLarge && fixture.requests.count == 2)
            #expect(fixture.storedNames.isEmpty)
        }
    }

    @Test(
        "a download to data starts again if the representation has changed, or has no validator",
        arguments: [true, false])
    func dataRestarts(hasValidator: Bool) async throws {
        let old = MockFile(bytes: sampleBytes(300_000, seed: 2), fields: hasValidator ? ["ETag": "\"old\""] : [:])
        let new = MockFile(bytes: bytes, fields: hasValidator ? ["ETag": "\"new\""] : [:])
        let fixture = try MockFixture { request in
            request.number == 1 ? old.response(to: request, cutAt: 100_000) : new.response(to: request)
        }
        let (data, _) = try await fixture.client.data(for: request, maxSize: 300_000)
        #expect(data == Data(bytes))
    }

    @Test("a stream continues after cuts, and delivers every byte once")
    func cuts() async throws {
        let file = MockFile(bytes: bytes)
        let fixture = try MockFixture { file.response(to: $0, cutAt: 70_000) }
        let stream = fixture.client.stream(request)
        #expect(try await collect(stream) == Data(bytes))
        #expect(
            fixture.requests.map { $0.fields["Range"] ?? "" } == [
                "", "bytes=70000-", "bytes=140000-", "bytes=210000-", "bytes=280000-",
            ])
        #expect(stream.progress.isFinished && stream.progress.completedUnitCount == 300_000)
        #expect(stream.metrics.count == 5 && fixture.storedNames.isEmpty)
    }

    @Test("if a server without ranges sends all bytes of the representation again, the delivered bytes are skipped")
    func withoutRanges() async throws {
        let bytes = bytes
        let fixture = try MockFixture { request in
            MockResponse(
                .ok, ["ETag": "\"one\""], content: bytes, cutAt: request.number <= 2 ? 90_000 * request.number : nil)
        }
        #expect(try await collect(fixture.client.stream(request)) == Data(bytes))
        #expect(fixture.requests.count == 3)
    }

    @Test(
        "a change of the representation after bytes were delivered ends the stream, with or without a validator",
        arguments: [["ETag": "\"new\""], [:]] as [Fields])
    func change(fields: Fields) async throws {
        let (delivered, isDelivered) = AsyncStream.makeStream(of: Void.self)
        let old = MockFile(bytes: bytes, fields: fields.isEmpty ? [:] : ["ETag": "\"old\""])
        let new = MockFile(bytes: bytes, fields: fields)
        let fixture = try MockFixture { request in
            if request.number == 1 { return old.response(to: request, cutAt: 100_000) }
            for await _ in delivered {}
            return new.response(to: request)
        }
        var received = Data()
        let error = await transferError {
            for try await chunk in fixture.client.stream(request) {
                received += chunk
                isDelivered.finish()
            }
        }
        #expect(error?.code == .sourceChanged && error?.resumeData == nil)
        #expect(received == Data(bytes.prefix(100_000)) && fixture.requests.count == 2)
    }

    @Test("Repr-Digest is compared with all bytes, even after a cut", arguments: [true, false])
    func digest(isRight: Bool) async throws {
        let value = digestField(isRight ? bytes : sampleBytes(10))
        let file = MockFile(bytes: bytes, fields: ["ETag": "\"one\"", "Repr-Digest": value])
        let fixture = try MockFixture { file.response(to: $0, cutAt: $0.number == 1 ? 70_000 : nil) }
        let error = await transferError { _ = try await collect(fixture.client.stream(request)) }
        #expect(error?.code == (isRight ? nil : .digestMismatch))
        let dataError = await transferError {
            _ = try await fixture.client.data(for: request, maxSize: 300_000)
        }
        #expect(dataError?.code == (isRight ? nil : .digestMismatch))
    }

    @Test("a response with more bytes than its part has is an error")
    func overrun() async throws {
        let bytes = bytes
        let fixture = try MockFixture { request in
            if request.number == 1 { return MockResponse(.ok, ["ETag": "\"one\""], content: bytes, cutAt: 100_000) }
            let fields: Fields = [
                "ETag": "\"one\"", "Content-Range": "bytes 100000-299999/300000", "Transfer-Encoding": "chunked",
            ]
            return MockResponse(.partialContent, fields, content: bytes)
        }
        let error = await transferError { _ = try await collect(fixture.client.stream(request)) }
        #expect(error?.code == .protocolViolation)
    }

    @Test("an empty representation is an empty sequence; an error status is thrown with its response")
    func emptyAndRefused() async throws {
        let fixture = try MockFixture {
            MockResponse($0.number == 1 ? .ok : .forbidden, content: $0.number == 1 ? "" : "no")
        }
        #expect(try await collect(fixture.client.stream(request)).isEmpty)
        let error = await transferError { _ = try await collect(fixture.client.stream(request)) }
        #expect(error?.code == .unauthorized && error?.response?.content == Array("no".utf8))
    }

    @Test("a method other than GET, and Range, are rejected", arguments: [true, false])
    func invalid(isMethod: Bool) async throws {
        let fixture = try MockFixture { _ in MockResponse(.ok) }
        let request = TransferRequest(
            "https://files.example/a", method: isMethod ? .post : .get, fields: isMethod ? [:] : ["Range": "bytes=1-"])
        let error = await transferError { _ = try await collect(fixture.client.stream(request)) }
        #expect(error?.code == .invalidRequest && fixture.requests.isEmpty)
    }

    /// Iterates until the first bytes have arrived, then leaves the loop, cancels the task or cancels the progress.
    @Test(
        "the download ends when the loop is left, or the task or the progress is canceled",
        arguments: ["break", "cancel", "pause"])
    func ending(kind: String) async throws {
        let (canceled, isCanceled) = AsyncStream.makeStream(of: Void.self)
        let file = MockFile(bytes: bytes)
        let fixture = try MockFixture { request in
            if request.number == 1 { return file.response(to: request, cutAt: 100_000) }
            do {
                try await Task.sleep(for: .seconds(3600))
            } catch {
                isCanceled.finish()
            }
            return MockResponse(.ok)
        }
        let stream = fixture.client.stream(request)
        let (arrived, hasArrived) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            for try await _ in stream {
                hasArrived.finish()
                if kind == "break" { break }
            }
        }
        for await _ in arrived {}
        if kind == "cancel" { task.cancel() }
        if kind == "pause" { stream.progress.cancel() }
        let result = await task.result
        switch kind {
        case "break": _ = try result.get()
        case "cancel": #expect(throws: CancellationError.self) { try result.get() }
        default:
            let error = await transferError { _ = try result.get() }
            #expect(error?.code == .paused)
        }
        for await event in stream.events() { if case .failed = event { break } }
        // The second request may not have been sent yet when the download ended.
        if fixture.requests.count == 2 { for await _ in canceled {} }
        #expect(fixture.storedNames.isEmpty)
    }

    @Test("while the caller reads nothing, reception stops; a connection that is lost meanwhile is replaced later")
    func backPressure() async throws {
        let bytes = sampleBytes(8 << 20)
        let file = MockFile(bytes: bytes)
        let fixture = try MockFixture { file.response(to: $0, cutAt: $0.number == 1 ? 1 << 20 : nil) }
        let stream = fixture.client.stream(request)
        var iterator = stream.makeAsyncIterator()
        var data = try await iterator.next() ?? Data()
        var largest = 0
        while let chunk = try await iterator.next() {
            largest = max(largest, chunk.count)
            data += chunk
        }
        #expect(data == Data(bytes))
        #expect(largest <= 2 << 20)
    }

    @Test("a second iteration fails, and ends neither the first one nor the download", .timeLimit(.minutes(2)))
    func secondIteration() async throws {
        let file = MockFile(bytes: bytes)
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        let fixture = try MockFixture { request in
            if request.number == 2 { for await _ in released {} }
            return file.response(to: request, cutAt: request.number == 1 ? 100_000 : nil)
        }
        let stream = fixture.client.stream(request)
        var first = stream.makeAsyncIterator()
        var data = Data()
        while data.count < 100_000, let chunk = try await first.next() { data += chunk }
        do {
            var second = stream.makeAsyncIterator()
            let error = await transferError { _ = try await second.next() }
            #expect(error?.code == .invalidRequest)
        }
        release.finish()
        while let chunk = try await first.next() { data += chunk }
        #expect(data == Data(bytes) && fixture.requests.count == 2)
    }
}
