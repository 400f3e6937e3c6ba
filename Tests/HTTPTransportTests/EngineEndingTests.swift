import ConformanceKit
import HTTPSemantics
import HTTPTestSupport
import SystemCalls
import TestSupport
import Testing

@testable import HTTPTransport

@Suite("Client: the end of an exchange", .blocking)
struct EngineEndingTests {
    private let fixture = EngineFixture()
    private let source = MemorySource(EngineFixture.muchContent)

    @Test("a connection that is cut is reported as lost without a delay", arguments: [0, 100_000, 5_000_000])
    func cut(after count: Int) async throws {
        let server = try ScriptedServer { _, reply in
            try reply.interim(104, ["Location": "/u"])
            _ = try reply.discardContent(atMost: count)
            reply.reset()
        }
        var interim = 0
        let start = ContinuousClock.now
        let result = await fixture.follow(fixture.request("PUT", server.url, [:], source.completeContent)) { event, _ in
            if case .interim = event { interim += 1 }
        }
        guard case .connectionLost? = result.failure else {
            Issue.record("\(result)")
            return
        }
        #expect(result.head == nil && result.sent >= Int64(count) && result.sent < 40_000_000)
        #expect(count == 0 || interim == 1)
        #expect(.now - start < EngineFixture.promptLimit)
    }

    @Test("a connection that the server closes without a response is reported as lost")
    func noAnswer() async throws {
        let server = try ScriptedServer { _, reply in reply.close() }
        let result = await fixture.run(fixture.request("GET", server.url))
        guard case .connectionLost? = result.failure else {
            Issue.record("\(result)")
            return
        }
    }

    @Test("the engine reports a refused connection, an unknown host and an unsupported scheme")
    func unreachable() async throws {
        let port = try FixedPort.next()
        #expect(
            await fixture.run(fixture.request("GET", "http://127.0.0.1:\(port)/")).failure
                == .connect(to: "127.0.0.1:\(port)", reason: "Connection refused"))
        #expect(await fixture.run(fixture.request("GET", "http://nowhere.invalid/")).failure == .resolve)
        #expect(await fixture.run(fixture.request("GET", "ftp://127.0.0.1/")).failure == .unsupportedURI)
        #expect(await fixture.run(fixture.request("GET", "no URI")).failure == .unsupportedURI)
        var request = fixture.request("GET", "http://127.0.0.1:\(port)/")
        request.settings.proxy = "http://nowhere.invalid:1"
        guard case .proxy(.failed)? = await fixture.run(request).failure else {
            Issue.record("the failure is another one")
            return
        }
    }

    @Test("an exchange ends if sending, waiting for the response or receiving stalls for the stall timeout")
    func stall() async throws {
        let server = try ScriptedServer { request, reply in
            switch request.target {
            case "/content": _ = try reply.discardContent(atMost: 100_000)
            case "/response": try reply.discardContent()
            default:
                try reply.begin(200, ["Content-Length": "10"])
                try reply.send("abc")
            }
            reply.stall()
        }
        for (target, content) in [
            ("/content", source.completeContent), ("/response", source.content(count: 100)), ("/within", nil),
        ] {
            var request = fixture.request(content == nil ? "GET" : "PUT", server.url + target, [:], content)
            request.stallTimeout = .milliseconds(300)
            let start = ContinuousClock.now
            let result = await fixture.run(request)
            #expect(result.failure == .stalled && !result.isContentComplete, "\(target)")
            #expect(
                (.milliseconds(290)...EngineFixture.promptLimit).contains(.now - start), "\(target) \(.now - start)")
        }
    }

    @Test("a slow transfer is not stalled")
    func slow() async throws {
        let limit = Duration.milliseconds(1400)
        let result = try await Pace.within(
            limit, until: { $0.failure == nil },
            { pace in
                let server = try ScriptedServer { _, reply in
                    for _ in 0..<8 {
                        Deadline.pause(.milliseconds(200))
                        _ = try reply.readContent(atMost: 1_000_000)
                        pace.step()
                    }
                    for _ in 0..<5 {
                        Deadline.pause(.milliseconds(150))
                        try reply.interim(104)
                        pace.step()
                    }
                    try reply.begin(200, ["Content-Length": "5"])
                    for _ in 0..<5 {
                        Deadline.pause(.milliseconds(150))
                        try reply.send("a")
                        pace.step()
                    }
                }
                var request = fixture.request("PUT", server.url, [:], source.content(count: 8_000_000))
                request.stallTimeout = limit
                return await fixture.run(request)
            })
        #expect(result.failure == nil && result.content == Array("aaaaa".utf8), "\(result)")
    }

    @Test("an exchange has one result if it is canceled right after its start, twice while it runs, or after its end")
    func cancel() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.interim(104)
            _ = try reply.discardContent(atMost: 1_000_000)
            reply.stall()
        }
        let before = fixture.engine.start(fixture.request("PUT", server.url, [:], source.completeContent))
        before.cancel()
        #expect(await before.result().failure == .canceled)
        let exchange = fixture.engine.start(fixture.request("PUT", server.url, [:], source.completeContent))
        let events = exchange.events.makeAsyncIterator()
        _ = await events.next()
        let start = ContinuousClock.now
        exchange.cancel()
        exchange.cancel()
        #expect(await exchange.result().failure == .canceled)
        #expect(.now - start < EngineFixture.promptLimit)
        exchange.cancel()
        #expect(await exchange.result().failure == .canceled)
    }

    @Test("an exchange that is canceled by another thread while it ends has one result")
    func cancelRace() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(200)
        }
        let fixture = fixture
        let content = MemorySource(Payload.bytes(10_000)).completeContent
        await withTaskGroup(of: TransportResult.self) { group in
            for number in 0..<200 {
                let exchange = fixture.engine.start(fixture.request("PUT", server.url, [:], content))
                group.addTask { await exchange.result() }
                group.addTask {
                    try? await Task.sleep(for: .microseconds(number * 20))
                    exchange.cancel()
                    return await exchange.result()
                }
            }
            for await result in group {
                #expect(result.failure == .canceled || (result.failure == nil && result.head?.status == 200))
            }
        }
    }

    @Test("shutting the engine down cancels the running exchanges and those that start later")
    func shutDown() async throws {
        let server = try ScriptedServer { _, reply in reply.stall() }
        let engine = TransportEngine()
        let exchanges = (0..<5).map { _ in engine.start(fixture.request("GET", server.url)) }
        #expect(server.awaitRequests(5))
        engine.shutDown()
        engine.shutDown()
        for exchange in exchanges { #expect(await exchange.result().failure == .canceled) }
        #expect(await engine.start(fixture.request("GET", server.url)).result().failure == .canceled)
    }

    @Test("a connection that the server has closed is replaced if nothing was sent on it yet")
    func staleConnection() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(200)
            reply.close()
        }
        for _ in 0..<5 {
            #expect(await fixture.run(fixture.request("GET", server.url)).failure == nil)
            Deadline.pause(.milliseconds(20))
        }
        #expect(server.requests.count == 5)
    }

    @Test("many exchanges run at the same time")
    func many() async throws {
        let server = try ScriptedServer { _, reply in
            let body = try reply.readContent()
            try reply.respond(200, [:], body.sha256)
        }
        let fixture = fixture
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<40 {
                group.addTask {
                    let bytes = Payload.bytes(100_000, seed: UInt64(number + 1))
                    let result = await fixture.run(
                        fixture.request("PUT", server.url, [:], MemorySource(bytes).completeContent))
                    return result.content == Array(bytes.sha256.utf8)
                }
            }
            for await isRight in group { #expect(isRight) }
        }
    }
}
