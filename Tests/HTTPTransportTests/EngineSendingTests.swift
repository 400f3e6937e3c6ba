import ConformanceKit
import HTTPSemantics
import HTTPTestSupport
import SystemCalls
import TestSupport
import Testing

@testable import HTTPTransport

@Suite("Client: sending with the engine", .blocking)
struct EngineSendingTests {
    private let fixture = EngineFixture()
    private static let bytes = Payload.bytes(3_000_000)
    private var bytes: [UInt8] { Self.bytes }

    @Test("a part of a source is sent with Content-Length and without Expect; all other fields are unchanged")
    func content() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(201, ["Location": "/x"], "done")
        }
        let source = MemorySource(bytes)
        let result = await fixture.run(
            fixture.request(
                "PATCH", server.url + "/a?b", ["X-Empty": "", "Expect": "100-continue", "X-A": "1"],
                source.content(from: 1_000_000, count: 1_500_000)))
        #expect(result.failure == nil && result.head?.status == 201 && result.content == Array("done".utf8))
        #expect(result.head?.version == "HTTP/1.1" && result.head?.fields["location"] == "/x")
        #expect(result.sent == 1_500_000 && result.received == 4 && result.hasSourceEnded && result.isContentComplete)
        let request = try #require(server.requests.first)
        #expect(request.method == "PATCH" && request.target == "/a?b")
        #expect(request.content == Array(bytes[1_000_000..<2_500_000]))
        #expect(request.fields["Content-Length"] == "1500000")
        #expect(!request.fields.contains("Expect") && request.fields["X-Empty"] == "" && request.fields["X-A"] == "1")
        #expect(!request.fields.contains("Transfer-Encoding") && !request.fields.contains("Accept-Encoding"))
    }

    @Test(
        "requests without content, requests with empty content, and HEAD requests are sent",
        arguments: ["POST", "DELETE", "OPTIONS", "HEAD"])
    func withoutContent(method: String) async throws {
        let server = try ScriptedServer { _, reply in
            try reply.respond(200, method == "HEAD" ? ["Content-Length": "77"] : [:], "")
        }
        let none = await fixture.run(fixture.request(method, server.url))
        #expect(none.failure == nil && none.head?.status == 200 && none.isContentComplete && none.received == 0)
        #expect(server.requests[0].method == method && !server.requests[0].fields.contains("Content-Length"))
        if method == "HEAD" { return }
        let empty = await fixture.run(
            fixture.request(method, server.url, [:], MemorySource([]).content(count: 0)))
        #expect(empty.failure == nil && empty.head?.status == 200 && empty.hasSourceEnded)
        #expect(server.requests[1].fields["Content-Length"] == "0")
        // Both requests use one connection.
        #expect(server.connections == 1)
    }

    @Test(
        "content in memory is sent unchanged, together with the head or after it",
        arguments: [1, 10_000, 65_535, 65_536])
    func inMemory(count: Int) async throws {
        let server = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(201)
        }
        let content = Array(bytes[..<count])
        var request = fixture.request("PUT", server.url, ["X-A": "1"])
        request.content = .range(from: 0, count: Int64(count))
        request.source = BytesSource(content)
        request.isMeasured = false
        #expect((request.contentWithHead == nil) == (count > 65_535))
        for _ in 1...2 {
            let result = await fixture.run(request)
            #expect(result.failure == nil && result.head?.status == 201 && result.sent == Int64(count))
        }
        for received in server.requests {
            #expect(received.method == "PUT" && received.content == content && received.fields["X-A"] == "1")
            #expect(received.fields["Content-Length"] == "\(count)" && !received.fields.contains("Content-Type"))
            #expect(!received.fields.contains("Expect") && !received.fields.contains("Transfer-Encoding"))
        }
        #expect(server.requests.count == 2 && server.connections == 1)
        // A rate limit, the gate and progress need content in pieces.
        request.rateLimit = 1 << 30
        #expect(request.contentWithHead == nil)
    }

    @Test("content of unknown length is sent in chunks until the source ends or the maximum is reached")
    func chunked() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(204)
        }
        let source = MemorySource(bytes, hasLength: false)
        let all = await fixture.run(fixture.request("PUT", server.url, [:], source.content(from: 500_000)))
        #expect(all.failure == nil && all.sent == 2_500_000 && all.hasSourceEnded)
        let part = await fixture.run(fixture.request("PUT", server.url, [:], source.content(atMost: 1_234_567)))
        #expect(part.failure == nil && part.sent == 1_234_567 && !part.hasSourceEnded)
        let requests = server.requests
        #expect(requests[0].content == Array(bytes[500_000...]) && requests[1].content == Array(bytes[..<1_234_567]))
        for request in requests {
            #expect(request.fields["Transfer-Encoding"] == "chunked" && !request.fields.contains("Content-Length"))
            #expect(request.isComplete)
        }
    }

    @Test("a source that fails or ends too early ends the exchange, and the server receives no complete content")
    func sourceFails() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(204)
        }
        let unreadable = MemorySource(bytes, failsAt: 1_000_000)
        let first = await fixture.run(fixture.request("PUT", server.url, [:], unreadable.completeContent))
        #expect(first.failure == .sourceFailed(at: 1_000_000, .system(.inputOutput)) && first.head == nil)
        let chunked = await fixture.run(fixture.request("PUT", server.url, [:], unreadable.content()))
        #expect(chunked.failure == .sourceFailed(at: 1_000_000, .system(.inputOutput)))
        let shrunk = MemorySource(bytes)
        let second = await fixture.run(
            fixture.request("PUT", server.url, [:], shrunk.content(from: 2_000_000, count: 2_000_000)))
        #expect(second.failure == .sourceFailed(at: 3_000_000, .unavailable(at: 3_000_000)) && !second.hasSourceEnded)
        let gone = MemorySource(bytes, failsAt: 500_000, .unavailable(at: 7))
        let third = await fixture.run(fixture.request("PUT", server.url, [:], gone.completeContent))
        #expect(third.failure == .sourceFailed(at: 500_000, .unavailable(at: 7)))
        #expect(server.requests.allSatisfy { !$0.isComplete })
    }

    @Test("the gate holds the content back until it is opened")
    func gate() async throws {
        let start = ContinuousClock.now
        let (result, requests) = try await Pace.within(
            .milliseconds(1500), until: { $0.0.failure == nil },
            { pace in
                let server = try ScriptedServer { _, reply in
                    Deadline.pause(.seconds(2))
                    try reply.interim(104, ["Location": "/u"])
                    pace.step()
                    try reply.discardContent()
                    try reply.respond(200)
                }
                let source = MemorySource(bytes)
                var request = fixture.request("PUT", server.url, [:], source.completeContent)
                request.gate = .seconds(600)
                // The time at the gate does not count as a stall.
                request.stallTimeout = .milliseconds(1500)
                var readBefore: Int64?
                let result = await fixture.follow(request) { event, exchange in
                    guard case .interim(let head) = event else { return }
                    #expect(head.status == 104 && head.fields["Location"] == "/u")
                    readBefore = source.position
                    exchange.openGate()
                }
                #expect(readBefore == 0)
                return (result, server.requests)
            })
        #expect(result.failure == nil && result.sent == 3_000_000)
        #expect(.now - start < EngineFixture.promptLimit)
        #expect(requests.first?.content == bytes)
    }

    @Test("the gate opens after its timeout")
    func gateTime() async throws {
        let limit = Duration.milliseconds(1500)
        let result = try await Pace.within(
            limit, until: { $0.failure == nil },
            { pace in
                let start = ContinuousClock.now
                let server = try ScriptedServer { _, reply in
                    _ = try reply.readContent(atMost: 1)
                    #expect((.milliseconds(1900)...EngineFixture.promptLimit).contains(.now - start))
                    pace.step()
                    try reply.discardContent()
                    try reply.respond(200)
                }
                var request = fixture.request("PUT", server.url, [:], MemorySource(bytes).completeContent)
                request.gate = .seconds(2)
                request.stallTimeout = limit
                return await fixture.run(request)
            })
        #expect(result.failure == nil && result.head?.status == 200)
    }

    @Test("all interim responses are reported as they arrive, separately from the final head")
    func interim() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.send("HTTP/1.1 100 Continue\r\n\r\n")
            for number in 1...50 {
                _ = try reply.readContent(atMost: 10_000)
                try reply.interim(104, ["Upload-Offset": "\(number * 10_000)"])
            }
            try reply.discardContent()
            try reply.respond(200, ["A": "b"])
        }
        var heads: [ClientResponseHead] = []
        var final: [ClientResponseHead] = []
        let result = await fixture.follow(fixture.request("PUT", server.url, [:], MemorySource(bytes).completeContent))
        {
            event, _ in
            if case .interim(let head) = event { heads.append(head) }
            if case .head(let head) = event { final.append(head) }
        }
        #expect(heads.map(\.status.rawValue) == [100] + Array(repeating: 104, count: 50))
        #expect(heads.last?.fields["Upload-Offset"] == "500000")
        #expect(final.count == 1 && final.first?.fields.contains("Upload-Offset") == false)
        #expect(result.failure == nil && result.head?.fields["A"] == "b")
    }

    @Test("progress is reported at most every 100 ms, and at the end")
    func progress() async throws {
        let server = try ScriptedServer { _, reply in
            for _ in 0..<10 {
                _ = try reply.readContent(atMost: 1_200_000)
                Deadline.pause(.milliseconds(50))
            }
            try reply.discardContent()
            try reply.respond(200)
        }
        let source = MemorySource([UInt8](repeating: 1, count: 12_000_000))
        let start = ContinuousClock.now
        var sent: [Int64] = []
        let result = await fixture.follow(fixture.request("PUT", server.url, [:], source.completeContent)) { event, _ in
            if case .sent(let count) = event { sent.append(count) }
        }
        let maximum = Int((.now - start) / .milliseconds(100)) + 2
        #expect(sent.count >= 2 && sent.count <= maximum, "\(sent)")
        #expect(sent == sent.sorted() && sent.last == 12_000_000 && result.sent == 12_000_000)
    }

    @Test("the rate limit applies in both directions")
    func rate() async throws {
        for method in ["PUT", "GET"] {
            let limit = Duration.milliseconds(700)
            let (result, start) = try await Pace.within(
                limit, until: { $0.0.failure == nil },
                { pace in
                    let server = try ScriptedServer { request, reply in
                        while try !reply.readContent(atMost: 20_000).isEmpty { pace.step() }
                        try reply.respond(200, [:], [UInt8](repeating: 1, count: method == "GET" ? 400_000 : 0))
                    }
                    let content = method == "PUT" ? MemorySource(Payload.bytes(400_000)).completeContent : nil
                    var request = fixture.request(method, server.url, [:], content)
                    request.rateLimit = 400_000
                    request.stallTimeout = limit
                    let start = ContinuousClock.now
                    return (await fixture.run(request), start)
                })
            #expect(result.failure == nil && result.sent + result.received == 400_000)
            #expect((.milliseconds(750)...EngineFixture.promptLimit).contains(.now - start), "\(.now - start)")
        }
    }
}
