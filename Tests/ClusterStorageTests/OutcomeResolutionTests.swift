import PostgreSQL
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import ClusterStorage

/// Tests requests during an attempt to resolve the outcomes of batches.
@Suite(.enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct OutcomeResolutionTests {
    @Test("all requests that wait for an attempt to resolve outcomes fail with it, and do not make one attempt each")
    func sharedFailure() throws {
        let fixture = try ClusterFixture(ownsServer: true)
        try fixture.database.updateClusterSchema()
        let session = try fixture.openSession()
        let (proxy, attempts) = (try fixture.proxy(), Counter())
        let database = Database(
            try DatabaseURI(parsing: "postgresql://postgres@127.0.0.1:\(proxy.port)/postgres"), connections: 16,
            timeout: .seconds(3)
        ) { _ in attempts.next() }
        defer { database.close() }
        let node = ClusterNode(database: database, session: session)
        node.session.withLock { $0.outcomeBecameUnknown(in: session) }
        proxy.set(.stalled([.toClient]))
        let (gate, failures) = (Monitor(false), Counter())
        let threads = try (0..<12).map { _ in
            try WorkerThread(name: "request") {
                gate.waitForever { $0 ? () : nil }
                do throws(StoreError) { _ = try node.read("SELECT 1") } catch { failures.next() }
            }
        }
        gate.withLock { $0 = true }
        gate.notifyAll()
        for thread in threads { thread.join() }
        #expect(failures.value == 12)
        // A thread that begins late makes another attempt.
        #expect(attempts.value <= 4)
        proxy.set(.open)
        let value = pollUntil(within: .seconds(20)) { try? node.read("SELECT 1::bigint").integer(0, 0) }
        #expect(value == 1)
    }
}
