import ConformanceKit
import Glibc
import SystemCalls
import TestSupport
import Testing

/// Tests uploads that an application processes while servers fail.
@Suite(
    "Routes of several servers", .blocking, .serialized, .enabled(if: Cluster.isPossible, "\(Cluster.requirement)"),
    .enabled(if: getenv("ONWARD_SCALE") != nil, "takes a minute: make test-scale runs it"))
struct ClusterRouteTests {
    private typealias Fixture = GatewayUploadFixture

    /// Completes an upload at the first server, and runs `body` while the application processes it. The application responds
    /// when the hold is released.
    /// - Parameter body: gets the path of the upload.
    /// - Returns: the response to the request that has completed the upload; `nil` if there is none.
    private func process(
        _ cluster: Cluster, _ origin: ScriptedServer, _ body: (String) throws -> Void
    ) throws -> Response? {
        let location = try Fixture.begin(cluster.nodes[0])
        let client = try cluster.nodes[0].connect()
        try client.send(.append(.v8, location, at: Fixture.content.count, complete: true, .bytes([])))
        #expect(origin.awaitRequests(1))
        try body(location)
        return try? client.readResponse(within: .seconds(60))
    }

    @Test(
        "the response of an application is stored although the sessions of all servers have ended meanwhile, because the database could not be reached",
        arguments: [false, true])
    func outage(respondsDuringOutage: Bool) throws {
        let hold = Hold()
        let origin = try ScriptedServer.origin { request, connection in
            hold.wait()
            try Fixture.accept(request, connection)
        }
        try withCluster(3, ["--route", "/app=\(origin.url),access=open"]) { cluster in
            func sessions() throws -> Set<String> {
                Set(try cluster.database.query("SELECT session FROM onward.node WHERE onward.is_alive(alive_until)"))
            }
            let earlier = try sessions()
            #expect(earlier.count == 3)
            var path = ""
            let response = try process(cluster, origin) { location in
                defer { hold.release() }
                path = location
                cluster.database.kill()
                SystemClock.pause(nanoseconds: 9_000_000_000)
                if respondsDuringOutage { hold.release() }
                SystemClock.pause(nanoseconds: 9_000_000_000)
                try cluster.database.start()
                for node in cluster.nodes { try node.awaitReadiness() }
                #expect(try sessions().isDisjoint(with: earlier))
                // The other servers look for interrupted uploads every second.
                SystemClock.pause(nanoseconds: 4_000_000_000)
            }
            Fixture.expectAnswer(try #require(response), .v8)
            for node in cluster.nodes {
                Fixture.expectAnswer(try Fixture.complete(node, path), .v8, isLive: false)
            }
            #expect(origin.requests.count == 1)
        }
    }

    @Test("the upload of a server that is killed while an application processes it gets its final response soon")
    func kill() throws {
        let hold = Hold()
        let origin = try ScriptedServer.origin { request, connection in
            hold.wait()
            try Fixture.accept(request, connection)
        }
        try withCluster(3, ["--route", "/app=\(origin.url),access=open"]) { cluster in
            _ = try process(cluster, origin) { location in
                defer { hold.release() }
                // The other servers have to be steady.
                SystemClock.pause(nanoseconds: 11_000_000_000)
                try cluster.nodes[0].crash()
                let start = ContinuousClock.now
                let isComplete: Bool? = try pollUntil(within: .seconds(60)) {
                    try cluster.nodes[1].retrieve(location).complete == true ? true : nil
                }
                #expect(isComplete == true && ContinuousClock.now - start < .seconds(20))
                Fixture.expectUnknown(try Fixture.complete(cluster.nodes[2], location))
            }
            #expect(origin.requests.count == 1)
        }
    }
}
