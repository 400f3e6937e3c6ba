import PostgreSQL
import SystemCalls
import TestSupport

/// A private server and a pool of connections to it.
final class TestDatabase: Sendable {
    let cluster: PostgreSQLCluster
    /// The proxy between the pool and the server.
    let proxy: FaultProxy
    let pool: Database

    static func start(
        connections: Int = 4, timeout: Duration = .seconds(30), isDurable: Bool = false,
        settings: [String: String] = [:]
    ) async throws -> TestDatabase {
        try await onThread {
            let cluster = try PostgreSQLCluster(isDurable: isDurable, settings: settings)
            return try TestDatabase(cluster, connections, timeout)
        }
    }

    private init(_ cluster: PostgreSQLCluster, _ connections: Int, _ timeout: Duration) throws {
        self.cluster = cluster
        proxy = try FaultProxy(to: cluster.port)
        pool = try Database(
            DatabaseURI(parsing: "postgresql://postgres@127.0.0.1:\(proxy.port)/postgres"), connections: connections,
            timeout: timeout)
    }

    deinit {
        pool.close()
        proxy.set(.cut)
    }

    /// Runs statements on connections of its own, to observe the server.
    func observer() throws -> Database {
        try Database(DatabaseURI(parsing: cluster.uri()), connections: 2, timeout: .seconds(30))
    }

    /// Waits until `count` sessions wait for an event of this name (monitoring-stats in PostgreSQL's manual).
    func awaitSessions(waitingFor event: String, count: Int64 = 1) throws {
        let observer = try observer()
        defer { observer.close() }
        let query = DatabaseStatement(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = $1 AND pid <> pg_backend_pid()", [.text(event)])
        guard try becomesTrue({ try observer.run(query).integer(0, 0) ?? 0 >= count }) else {
            throw TestFailure("fewer than \(count) sessions wait for \(event)")
        }
    }
}

extension DatabaseError {
    /// Whether the transaction may have been committed; `nil` if the server rejected it.
    var isPossiblyCommitted: Bool? {
        if case .unavailable(_, let isPossiblyCommitted) = self { isPossiblyCommitted } else { nil }
    }

    var sqlState: String? {
        if case .failed(let sqlState, _) = self { sqlState } else { nil }
    }
}

/// The error that `body` throws; `nil` if it succeeds.
func failure<Result>(_ body: () throws(DatabaseError) -> Result) -> DatabaseError? {
    do throws(DatabaseError) {
        _ = try body()
        return nil
    } catch {
        return error
    }
}

/// Whether a condition of other processes becomes true within 30 seconds.
func becomesTrue(_ condition: () throws -> Bool) rethrows -> Bool {
    try pollUntil(within: .seconds(30)) { try condition() ? true : nil } ?? false
}
