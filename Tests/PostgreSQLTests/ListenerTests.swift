import PostgreSQL
import SystemCalls
import TestSupport
import Testing

@Suite("Notifications", .enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct ListenerTests {
    private struct Received {
        var payloads: [String] = []
        var connections = 0
    }

    @Test("Notifications arrive in order, and after a restart of the server the listener connects again")
    func notifications() async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            let received = Monitor(Received())
            let listener = try database.pool.listen("a \"channel\"") {
                received.withLock { $0.connections += 1 }
                received.notifyAll()
            } body: { payload in
                received.withLock { $0.payloads.append(payload) }
                received.notifyAll()
            }
            func becomes(_ condition: @escaping (Received) -> Bool) -> Bool {
                received.wait(until: SystemClock.deadline(in: .seconds(30))) { condition($0) ? () : nil } != nil
            }
            func notify(_ payload: String) throws {
                _ = try database.pool.run(
                    DatabaseStatement("SELECT pg_notify($1, $2)", [.text("a \"channel\""), .text(payload)]))
            }
            #expect(becomes { $0.connections == 1 })
            for number in 0..<20 { try notify("\(number)") }
            #expect(becomes { $0.payloads == (0..<20).map { "\($0)" } })

            database.cluster.kill()
            try database.cluster.start()
            #expect(becomes { $0.connections == 2 })
            try notify("after")
            #expect(becomes { $0.payloads.last == "after" })

            listener.close()
            try notify("closed")
            #expect(received.withLock { $0.payloads.last } == "after")
        }
    }

    @Test("A transaction that fails sends no notification")
    func failedTransaction() async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            let received = Monitor(Received())
            let listener = try database.pool.listen("channel") {
                received.withLock { $0.connections += 1 }
                received.notifyAll()
            } body: { payload in
                received.withLock { $0.payloads.append(payload) }
                received.notifyAll()
            }
            defer { listener.close() }
            let deadline = SystemClock.deadline(in: .seconds(30))
            _ = received.wait(until: deadline) { $0.connections > 0 ? () : nil }
            func notify(_ payload: String) -> DatabaseStatement {
                DatabaseStatement("SELECT pg_notify('channel', $1)", [.text(payload)])
            }
            _ = failure { () throws(DatabaseError) in
                try database.pool.transaction([notify("failed"), DatabaseStatement("SELECT 1 / 0")])
            }
            _ = try database.pool.run(notify("committed"))
            _ = received.wait(until: deadline) { $0.payloads.isEmpty ? nil : () }
            #expect(received.withLock { $0.payloads } == ["committed"])
        }
    }

    @Test("A listener without a server ends at once when it is closed")
    func closedWhileDisconnected() async throws {
        try await onThread {
            let pool = try Database(DatabaseURI(parsing: "postgresql://127.0.0.1:\(FixedPort.next())/postgres"))
            let listener = try pool.listen("channel") {
            } body: { _ in
            }
            let start = SystemClock.monotonicNanoseconds()
            listener.close()
            #expect(SystemClock.monotonicNanoseconds() - start < 10_000_000_000)
        }
    }
}
