import ConformanceKit
import Glibc
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// Tests how often the origin is called for an upload if the server ends before the response.
@Suite("Gateway: the effect of an upload, and the end of the server", .blocking)
struct GatewayEffectOnceStopTests {
    private typealias Fixture = GatewayUploadFixture
    private static let content = GatewayUploadFixture.content
    private static let secret = "Bearer forwarded-credential-0123456789"

    @Test("the server is killed while the origin works: the outcome is unknown, and the origin is not called again")
    func killedAtWork() throws {
        try killAtWork { server, origin, location in
            #expect(origin.requests.count == 1)
            try Fixture.expectFinal(server, origin, location) { Fixture.expectUnknown($0) }
        }
    }

    @Test(
        "the server is killed while the origin works: on a repeatable route the origin is called again with the same key"
    )
    func killedAtRepeatableWork() throws {
        try killAtWork("repeat=safe") { server, origin, location in
            try Fixture.expectWaiting(server, location)
            let again = try Fixture.complete(server, location, .v8, [("Authorization", Self.secret)])
            Fixture.expectAnswer(again, .v8)
            #expect(origin.requests.count == 2)
            try GatewayEffectOnceTests.expectOneKey(origin)
            try Fixture.expectFinal(server, origin, location) { Fixture.expectAnswer($0, .v8, isLive: false) }
        }
    }

    /// Kills the server while the origin has the first request, restarts it, and runs `body`.
    private func killAtWork(
        _ settings: String..., body: (ServerProcess, ScriptedServer, _ location: String) throws -> Void
    ) throws {
        let hold = Hold()
        let origin = try ScriptedServer.origin { request, connection in
            hold.wait()
            try Fixture.accept(request, connection)
        }
        let route = (["/app=\(origin.url)", "access=open"] + settings).joined(separator: ",")
        try withServer("--route", route) { server in
            let location = try Fixture.begin(server)
            let client = try server.connect()
            try client.send(
                Request.append(.v8, location, at: Self.content.count, complete: true, .bytes([]))
                    .with("Authorization", Self.secret).with("Cookie", "session=" + Self.secret))
            #expect(origin.awaitRequests(1))
            try server.crash()
            #expect(StoredBytes(of: server).places(of: "forwarded-credential").isEmpty)
            hold.release()
            try server.restart()
            try body(server, origin, location)
        }
    }

    @Test("a stop waits for the origin's response, which reaches the client", arguments: [SIGTERM, SIGINT])
    func stop(signal: Int32) throws {
        let hold = Hold()
        let origin = try ScriptedServer.origin { request, connection in
            hold.wait()
            try Fixture.accept(request, connection)
        }
        try withGateway(to: origin, options: ["--drain-timeout", "1h"]) { server in
            let location = try Fixture.begin(server)
            let client = try server.connect()
            try client.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            #expect(origin.awaitRequests(1))
            server.process.kill(signal)
            #expect(eventually { (try? server.connect()) == nil })
            hold.release()
            Fixture.expectAnswer(try client.readResponse(), .v8)
            #expect(try server.process.awaitEnding() == .exited(0))
            try server.restart()
            try Fixture.expectFinal(server, origin, location) { Fixture.expectAnswer($0, .v8, isLive: false) }
            #expect(origin.requests.count == 1)
        }
    }

    @Test(
        "a stop that does not wait for the origin: the outcome is unknown, or the origin is called again",
        arguments: [false, true])
    func hastyStop(isRepeatable: Bool) throws {
        let hold = Hold()
        let origin = try ScriptedServer.origin { request, connection in
            hold.wait()
            try Fixture.accept(request, connection)
        }
        let settings = isRepeatable ? ",repeat=safe" : ""
        try withServer("--route", "/app=\(origin.url),access=open" + settings, "--drain-timeout", "0s") { server in
            let location = try Fixture.begin(server)
            let client = try server.connect()
            try client.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            #expect(origin.awaitRequests(1))
            #expect(try server.stop() == .exited(0))
            let consequence =
                isRepeatable ? "the upload is kept, and the target is called again" : "its outcome is unknown"
            #expect(
                server.log.contains("the server stops before the target has responded: \(consequence)"), "\(server.log)"
            )
            #expect(!server.log.contains("target failed"))
            hold.release()
            try server.restart()
            if isRepeatable {
                try Fixture.expectWaiting(server, location)
                Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
                #expect(origin.requests.count == 2)
                try GatewayEffectOnceTests.expectOneKey(origin)
            } else {
                try Fixture.expectFinal(server, origin, location) { Fixture.expectUnknown($0) }
                #expect(origin.requests.count == 1)
            }
        }
    }

    @Test("a stop while the origin is down: the upload waits")
    func stopWhileDown() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        origin.stop()
        try withGateway(to: origin, "retry=1h", options: ["--drain-timeout", "0s"]) { server in
            let location = try Fixture.begin(server)
            let client = try server.connect()
            try client.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            try Fixture.expectWaiting(server, location)
            #expect(try server.stop() == .exited(0))
            #expect(server.log.contains("the server stops before the target has responded (the target cannot"))
            try origin.restart()
            try server.restart()
            try Fixture.expectWaiting(server, location)
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(origin.requests.count == 1)
        }
    }
}
