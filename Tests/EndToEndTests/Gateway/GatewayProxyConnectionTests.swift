import ConformanceKit
import SystemCalls
import TestSupport
import Testing

/// Connections to an origin that many requests share.
@Suite("Gateway: connections to the origin", .blocking)
struct GatewayProxyConnectionTests {
    /// A request can use a connection at the moment when the previous request on it ends. The response to the new request
    /// must not count as input that belongs to no request.
    @Test("simultaneous requests that share connections reach the origin once each")
    func shared() async throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        let statuses = Monitor<[Int: Int]>([:])
        let server = try ServerProcess(["--route", "/app=\(origin.url),access=open"])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in 0..<8 {
                let (port, authority) = (server.port, server.authority)
                group.addTask {
                    try await onThread {
                        let connection = try RawConnection(port: port, authority: authority)
                        for number in 0..<150 {
                            let status = try connection.exchange(.get("/app/\(client)-\(number)")).status
                            statuses.withLock { $0[status, default: 0] += 1 }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(statuses.withLock { $0 } == [200: 1200])
        #expect(origin.requests.count == 1200 && Set(origin.requests.map(\.target)).count == 1200)
        // The connections were kept.
        #expect(origin.connections < 100, "\(origin.connections) connections")
    }
}
