import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

/// Uploads of sequences over connections. `SequenceSourceTests` has the cases that need no connection.
@Suite("Client: uploads of sequences", .blocking)
struct SequenceUploadTests {
    private let bytes = Payload.bytes(1_000_000)

    private func chunks(of bytes: [UInt8], size: Int) -> AsyncStream<[UInt8]> {
        let position = Monitor(0)
        return AsyncStream {
            let chunk = position.withLock { position in
                defer { position += size }
                return Array(bytes.dropFirst(position).prefix(size))
            }
            return chunk.isEmpty ? nil : chunk
        }
    }

    @Test(
        "a sequence is sent in chunks; after each cut only the remaining bytes are sent",
        arguments: [nil, 100_000] as [Int64?])
    func cuts(maxRequestContentLength: Int64?) async throws {
        let model = ScriptedUpload()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            guard request.content.isEmpty, ["PUT", "PATCH"].contains(request.method), counter.next() <= 5 else {
                return try model.serve(request, reply)
            }
            if request.method == "PUT" { try reply.interim(104, model.announcement) }
            try model.receiveContent(reply, atMost: 77_777)
            reply.reset()
        }
        let fixture = try UploadFixture { $0.maxRequestContentLength = maxRequestContentLength }
        let upload = fixture.client.upload(
            TransferRequest(server.url + "/x", method: .put), from: chunks(of: bytes, size: 10_000))
        #expect(try await upload.value().status == 200)
        expectSame(model.inventory.bytes, bytes)
    }

    @Test("the server publishes an upload from a sequence of chunks, or of single bytes", arguments: [true, false])
    func published(isOfBytes: Bool) async throws {
        try await withServer { server in
            let fixture = try UploadFixture()
            let bytes = isOfBytes ? Array(bytes.prefix(200_000)) : bytes
            let request = TransferRequest(server.url("/files/a.bin"), method: .put)
            let upload =
                isOfBytes
                ? fixture.client.upload(
                    request,
                    from: AsyncStream { continuation in
                        for byte in bytes { continuation.yield(byte) }
                        continuation.finish()
                    }) : fixture.client.upload(request, from: chunks(of: bytes, size: 3333))
            _ = try await upload.value()
            expectSame(server.published("a.bin") ?? [], bytes)
        }
    }

    @Test("a sequence that waits does not stall the upload, and does not stop the other transfers of the client")
    func waiting() async throws {
        let limit = Duration.seconds(2)
        let model = ScriptedUpload()
        let server = try ScriptedServer { try model.serve($0, $1) }
        let file = ScriptedFile(bytes: bytes)
        let files = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try UploadFixture { $0.stallTimeout = limit }
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        let upload = fixture.client.upload(TransferRequest(server.url + "/x", method: .put), from: stream)
        continuation.yield(Array(bytes[..<100_000]))
        upload.start()
        _ = pollUntil(within: .seconds(60)) { model.inventory.count >= 64 << 10 ? true : nil }
        // Other transfers take place while the upload waits, for longer than the stall timeout.
        let start = ContinuousClock.now
        while start.duration(to: .now) < limit * 1.5 {
            #expect(
                try await fixture.client.data(for: TransferRequest(files.url), maxSize: 1 << 20).data.count
                    == 1_000_000)
        }
        continuation.yield(Array(bytes[100_000...]))
        continuation.finish()
        #expect(try await upload.value().requests == 1)
        expectSame(model.inventory.bytes, bytes)
    }

    @Test("a final response and a pause end an upload whose sequence waits", arguments: [true, false])
    func endedWhileWaiting(isAnswered: Bool) async throws {
        let server = try ScriptedServer { request, reply in
            guard request.method == "PUT" else { return try ScriptedUpload().serve(request, reply) }
            try reply.interim(104, ScriptedUpload().announcement)
            try reply.discardContent(atMost: 1000)
            if !isAnswered { return reply.stall() }
            try reply.respond(403, ["Upload-Complete": "?1"], "no")
        }
        let fixture = try UploadFixture()
        let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        continuation.yield(Array(bytes[..<1000]))
        let upload = fixture.client.upload(TransferRequest(server.url + "/x", method: .put), from: stream)
        if isAnswered {
            #expect(await upload.failure()?.status == .forbidden)
        } else {
            for await event in upload.events() { if case .checkpoint = event { break } }
            #expect(await upload.pause() != nil)
        }
        continuation.finish()
    }
}
