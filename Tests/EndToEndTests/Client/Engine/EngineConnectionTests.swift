import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("Client: the engine's connections", .blocking)
struct EngineConnectionTests {
    private let fixture = EngineFixture()

    @Test("a request through a proxy has an absolute target")
    func proxy() async throws {
        let proxy = try ScriptedServer { _, reply in
            try reply.discardContent()
            try reply.respond(200, [:], "through")
        }
        var request = fixture.request(
            "PUT", "http://origin.invalid/a", [:], MemorySource(Payload.bytes(1000)).content(count: 1000))
        request.settings.proxy = proxy.url
        let result = await fixture.run(request)
        #expect(result.failure == nil && result.content == Array("through".utf8))
        #expect(proxy.requests.first?.target == "http://origin.invalid/a" && proxy.requests.first?.contentCount == 1000)
    }

    @Test("the response of a proxy that rejects a tunnel is not used as the origin's")
    func refusedTunnel() async throws {
        let proxy = try ScriptedServer { _, reply in try reply.respond(403, [:], "no") }
        var request = fixture.request("GET", "https://origin.invalid/a")
        request.settings.proxy = proxy.url
        let result = await fixture.run(request)
        #expect(result.failure == .proxy(.refused(403)) && result.head == nil && result.content.isEmpty, "\(result)")
        #expect(proxy.requests.first?.method == "CONNECT")
    }

    @Test("TLS: a certificate of a private authority is accepted only if the configuration names that authority")
    func privateAuthority() async throws {
        let server = try SecureServer()
        var request = fixture.request("GET", server.url + "/")
        guard case .tls? = await fixture.run(request).failure else {
            Issue.record("trusted")
            return
        }
        request.settings.caFile = FilePath(server.certificate)
        let result = await fixture.run(request)
        #expect(result.failure == nil && result.head?.status == 200 && result.received > 0, "\(result)")
        request.settings.caFile = "/nowhere"
        guard case .tls? = await fixture.run(request).failure else {
            Issue.record("trusted")
            return
        }
    }

    @Test("each exchange on a connection that is cut or stalls at random has one result; no cut exchange succeeds")
    func faults() async throws {
        let bytes = Payload.bytes(600_000)
        let server = try ScriptedServer { request, reply in
            let body = try reply.readContent()
            try reply.respond(200, [:], request.method == "PUT" ? body : bytes)
        }
        let seed = SeededGenerator.runSeed
        let proxy = try FaultProxy(
            to: server.port, seed: seed, bytes: 1...1_500_000, kinds: [.reset, .stall],
            directions: FaultProxy.Direction.allCases)
        var failures = 0
        for round in 0..<40 {
            var request = fixture.request(
                "PUT", proxy.url, [:], round % 2 == 0 ? MemorySource(bytes).completeContent : nil)
            if request.source == nil { request.method = .get }
            request.stallTimeout = .milliseconds(250)
            let result = await fixture.run(request)
            guard let failure = result.failure else {
                #expect(result.isContentComplete && result.content == bytes, "seed \(seed) round \(round)")
                continue
            }
            failures += 1
            #expect(!result.isContentComplete, "seed \(seed) round \(round)")
            switch failure {
            case .connectionLost, .stalled: break
            default: Issue.record("\(failure), seed \(seed) round \(round)")
            }
        }
        #expect(failures > 0 && proxy.cuts > 0, "seed \(seed)")
        #expect(proxy.bytesToServer > 0 && proxy.bytesToClient > 0)
    }
}
