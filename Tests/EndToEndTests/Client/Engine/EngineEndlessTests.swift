import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("Client: responses without end", .blocking)
struct EngineEndlessTests {
    private let fixture = EngineFixture()

    /// A server that sends a head with this status, and then content for a long time.
    private func server(_ status: Int, pause: Duration) throws -> ScriptedServer {
        try ScriptedServer { _, reply in
            try reply.begin(status, ["Transfer-Encoding": "chunked"])
            for _ in 0..<3000 {
                try reply.send(chunk: String(repeating: "x", count: pause == .zero ? 16_000 : 1))
                Deadline.pause(pause)
            }
            reply.stall()
        }
    }

    @Test(
        "after a head that decides the result, the engine does not wait for the end of the content",
        arguments: [true, false])
    func refusal(isFlood: Bool) async throws {
        let server = try server(500, pause: isFlood ? .zero : .milliseconds(100))
        let start = ContinuousClock.now
        let result = await fixture.run(fixture.request("GET", server.url) { _ in .refusal })
        #expect(result.failure == nil && result.head?.status == 500 && !result.isContentComplete)
        #expect(result.content.count <= 64 << 10 && !result.content.isEmpty)
        #expect(isFlood ? result.content.count == 64 << 10 : .now - start >= .seconds(4.5))
        #expect(.now - start < .seconds(60))
    }

    @Test(
        "uploads and downloads end soon after an error status, however long the content of the response is",
        arguments: ["PUT", "GET"])
    func transfers(method: String) async throws {
        let server = try server(403, pause: .milliseconds(100))
        let client = try UploadFixture()
        let start = ContinuousClock.now
        let error =
            method == "GET"
            ? await (try client.download(server.url)).failure()
            : await client.client.upload(TransferRequest(server.url, method: .put), from: try client.file([1, 2, 3]))
                .failure()
        #expect(error?.code == .unauthorized && error?.response?.content.isEmpty == false)
        #expect(.now - start < .seconds(60))
    }

    @Test("interim responses and a head that never ends do not extend the stall timeout", arguments: [true, false])
    func trickle(isInterim: Bool) async throws {
        let server = try ScriptedServer { _, reply in
            if !isInterim { try reply.send("HTTP/1.1 200 OK\r\n") }
            for number in 0..<600 {
                if isInterim { try reply.interim(104) } else { try reply.send("X-\(number): y\r\n") }
                Deadline.pause(.milliseconds(100))
            }
        }
        var request = fixture.request("GET", server.url)
        request.stallTimeout = .seconds(1)
        let start = ContinuousClock.now
        let result = await fixture.run(request)
        #expect(result.failure == .stalled)
        #expect(.now - start < .seconds(30))
    }

    @Test("an upload whose offset grows in interim responses does not stall, even if no byte is sent")
    func acknowledgments() async throws {
        let limit = Duration.seconds(1)
        let result = try await Pace.within(
            limit, until: { $0.requests == 1 },
            { pace in
                let upload = ScriptedUpload()
                let server = try ScriptedServer { request, reply in
                    guard request.method == "PUT" else { return try upload.serve(request, reply) }
                    try reply.interim(104, upload.announcement)
                    try upload.receiveContent(reply)
                    for offset in 1...30 {
                        try reply.interim(104, Fields([ScriptedUpload.version, ("Upload-Offset", "\(offset)")]))
                        pace.step()
                        Deadline.pause(.milliseconds(100))
                    }
                    try reply.respond(200, ["Upload-Complete": "?1"], "stored")
                    pace.step()
                }
                let client = try UploadFixture { $0.stallTimeout = limit }
                let source = try client.file([UInt8](repeating: 1, count: 30))
                return try await client.client.upload(TransferRequest(server.url, method: .put), from: source).value()
            })
        #expect(result.status == 200 && result.requests == 1)
    }
}
