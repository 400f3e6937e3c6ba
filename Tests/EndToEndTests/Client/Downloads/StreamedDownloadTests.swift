import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

/// Downloads to memory over connections. The tests of the target `ResumableTransferTests` have the cases that need no
/// connection.
@Suite("Client: streams of downloads", .blocking)
struct StreamedDownloadTests {
    @Test("while the caller does not iterate, the client stops receiving, and the stall timeout does not expire")
    func backPressure() async throws {
        let bytes = Payload.bytes(64 << 20)
        let sent = Monitor(0)
        let server = try ScriptedServer { _, reply in
            try reply.begin(200, ["ETag": "\"one\"", "Content-Length": "\(bytes.count)"])
            for start in stride(from: 0, to: bytes.count, by: 1 << 20) {
                try reply.send([UInt8](bytes[start..<start + (1 << 20)]))
                sent.withLock { $0 += 1 << 20 }
            }
        }
        let limit = Duration.seconds(2)
        let fixture = try UploadFixture { $0.stallTimeout = limit }
        var iterator = fixture.client.stream(TransferRequest(server.url)).makeAsyncIterator()
        var data = try await iterator.next() ?? Data()
        // The test has to wait: no event reports that nothing is received.
        try await Task.sleep(for: limit * 1.5)
        // The kernel's buffers on both sides contain some MiB in addition to the bytes in the client.
        #expect(sent.withLock { $0 } < 40 << 20)
        while let chunk = try await iterator.next() { data += chunk }
        expectSame([UInt8](data), bytes)
        #expect(server.requests.count == 1)
    }

    @Test("a stream continues after cut connections, and data(for:) returns the complete content")
    func resets() async throws {
        let bytes = Payload.bytes(3_000_000)
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { request, reply in try file.serve(request, reply, cut: 700_000) }
        let fixture = try UploadFixture()
        var data = Data()
        for try await chunk in fixture.client.stream(TransferRequest(server.url)) { data += chunk }
        expectSame([UInt8](data), bytes)
        let (again, _) = try await fixture.client.data(for: TransferRequest(server.url), maxSize: 3_000_000)
        expectSame([UInt8](again), bytes)
        #expect(server.requests.count == 10 && fixture.tickets.isEmpty)
    }
}
