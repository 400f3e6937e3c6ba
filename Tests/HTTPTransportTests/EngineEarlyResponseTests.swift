import ConformanceKit
import HTTPSemantics
import HTTPTestSupport
import SystemCalls
import Testing

@testable import HTTPTransport

@Suite("Client: responses before the end of the request", .blocking)
struct EngineEarlyResponseTests {
    private let fixture = EngineFixture()
    private let source = MemorySource(EngineFixture.muchContent)

    enum Timing: CaseIterable, Sendable { case drained, reset, closed, kept }

    @Test(
        "CLI-36: a final response while the content is being sent is delivered, and sending stops",
        arguments: [200, 201, 204, 409, 413, 500], Timing.allCases)
    func early(status: Int, timing: Timing) async throws {
        let server = try ScriptedServer { _, reply in
            _ = try reply.readContent(atMost: 300_000)
            try reply.respond(status, ["Upload-Offset": "5"], status == 204 ? "" : "why")
            switch timing {
            case .drained: reply.drain()
            case .reset: reply.reset()
            case .closed: reply.close()
            case .kept: reply.stall()
            }
        }
        let start = ContinuousClock.now
        let result = await fixture.run(fixture.request("PUT", server.url, [:], source.completeContent))
        #expect(result.head?.status.rawValue == status && result.head?.fields["Upload-Offset"] == "5")
        #expect(result.failure == nil && result.isContentComplete)
        #expect(result.content == (status == 204 ? [] : Array("why".utf8)))
        #expect(result.sent < 40_000_000 && !result.hasSourceEnded)
        #expect(.now - start < EngineFixture.promptLimit)
    }

    @Test(
        "CLI-36: a chunked final response while the content is being sent is delivered, too", arguments: [200, 409],
        [false, true])
    func chunked(status: Int, closes: Bool) async throws {
        let server = try ScriptedServer { _, reply in
            _ = try reply.readContent(atMost: 300_000)
            try reply.begin(
                status,
                closes ? ["Transfer-Encoding": "chunked", "Connection": "close"] : ["Transfer-Encoding": "chunked"])
            try reply.send(chunk: "be")
            Deadline.pause(.milliseconds(50))
            try reply.send(chunk: "cause")
            try reply.send(chunk: "")
            if !closes { reply.stall() }
        }
        let result = await fixture.run(fixture.request("PUT", server.url, [:], source.completeContent))
        #expect(result.head?.status.rawValue == status && result.content == Array("because".utf8))
        #expect(result.failure == nil && result.sent < 40_000_000, "\(result)")
    }

    @Test("CLI-36: a final response of a server that does not read the bytes in libcurl's buffer is delivered, too")
    func stuck() async throws {
        let server = try ScriptedServer { _, reply in
            _ = try reply.readContent(atMost: 300_000)
            // The kernels' buffers are full after this time.
            Deadline.pause(.milliseconds(500))
            try reply.begin(200, ["Transfer-Encoding": "chunked"])
            try reply.send(chunk: "because")
            try reply.send(chunk: "")
            reply.stall()
        }
        let start = ContinuousClock.now
        let result = await fixture.run(fixture.request("PUT", server.url, [:], source.completeContent))
        #expect(result.head?.status == 200 && result.content == Array("because".utf8))
        #expect(result.failure == nil && result.sent < 40_000_000, "\(result)")
        #expect(.now - start < EngineFixture.promptLimit)
    }

    @Test("CLI-36: a final response while the content is held at the gate is delivered, too", arguments: [200, 409])
    func gated(status: Int) async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(status, [:], "no") }
        var request = fixture.request("PUT", server.url, [:], source.completeContent)
        request.gate = .seconds(600)
        let start = ContinuousClock.now
        let result = await fixture.run(request)
        #expect(result.head?.status.rawValue == status && result.failure == nil && result.sent == 0)
        #expect(result.content == Array("no".utf8) && source.position == 0)
        #expect(.now - start < EngineFixture.promptLimit)
    }

    @Test("a connection with an early response is not used again")
    func notReused() async throws {
        let server = try ScriptedServer { request, reply in
            if request.method == "PUT" { _ = try reply.readContent(atMost: 300_000) }
            try reply.respond(200, [:], "ok")
            if request.method == "PUT" { reply.stall() }
        }
        _ = await fixture.run(fixture.request("PUT", server.url, [:], source.completeContent))
        let next = await fixture.run(fixture.request("GET", server.url))
        #expect(next.failure == nil && next.content == Array("ok".utf8))
        #expect(server.connections == 2)
    }

    @Test("CLI-36: a response that is followed by a reset is not lost, however many bytes were sent before")
    func race() async throws {
        var lost = 0
        for round in 0..<60 {
            let server = try ScriptedServer { _, reply in
                _ = try reply.discardContent(atMost: 100_000 + round * 37_000)
                try reply.respond(409, [:], "conflict")
                reply.close()
            }
            let result = await fixture.run(fixture.request("PUT", server.url, [:], source.completeContent))
            if result.head?.status != 409 { lost += 1 }
        }
        #expect(lost == 0)
    }
}
