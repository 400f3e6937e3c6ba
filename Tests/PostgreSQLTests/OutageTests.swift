import PostgreSQL
import SystemCalls
import TestSupport
import Testing

@Suite("Outages", .enabled(if: PostgreSQLCluster.isRequired, "takes long: make test-scale runs it"))
struct OutageTests {
    private let insert = DatabaseStatement("INSERT INTO t VALUES (1)")
    private let count = DatabaseStatement("SELECT count(*) FROM t")

    @Test("If the server is killed during a commit, the result is unknown, and afterwards the pool works again")
    func killedDuringCommit() async throws {
        // The commit is durable on this server and waits for a second one that does not exist.
        let database = try await TestDatabase.start(isDurable: true, settings: ["synchronous_standby_names": "missing"])
        try await onThread {
            _ = try database.pool.transaction([
                DatabaseStatement("SET LOCAL synchronous_commit = 'local'"),
                DatabaseStatement("CREATE TABLE t (n bigint)"),
            ])
        }
        async let outcome = onThread { failure { () throws(DatabaseError) in try database.pool.run(insert) } }
        try await onThread { try database.awaitSessions(waitingFor: "SyncRep") }
        database.cluster.kill()
        let error = try await outcome
        #expect(error?.isPossiblyCommitted == true, "\(String(describing: error))")
        try await onThread {
            let error = failure { () throws(DatabaseError) in try database.pool.run(count) }
            #expect(error?.isPossiblyCommitted == false, "\(String(describing: error))")
            try database.cluster.start()
            // This transaction was committed.
            #expect(try database.pool.run(count).integer(0, 0) == 1)
        }
    }

    @Test("The timeout does not end a commit that waits for a standby server, so it is not reported as complete")
    func commitWithoutStandby() async throws {
        let database = try await TestDatabase.start(
            timeout: .seconds(4), settings: ["synchronous_standby_names": "missing"])
        try await onThread {
            let error = failure { () throws(DatabaseError) in
                try database.pool.run(DatabaseStatement("CREATE TABLE t (n bigint)"))
            }
            #expect(error?.isPossiblyCommitted == true, "\(String(describing: error))")
        }
    }

    @Test("If an administrator cancels the wait of a commit for a standby server, the result is unknown")
    func canceledReplication() async throws {
        let database = try await TestDatabase.start(settings: ["synchronous_standby_names": "missing"])
        async let outcome = onThread {
            failure { () throws(DatabaseError) in try database.pool.run(DatabaseStatement("CREATE TABLE t (n bigint)"))
            }
        }
        try await onThread {
            try database.awaitSessions(waitingFor: "SyncRep")
            _ = try database.observer().run(
                DatabaseStatement("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
        }
        let error = try await outcome
        #expect(error?.isPossiblyCommitted == true, "\(String(describing: error))")
    }

    @Test("If the server is killed while a statement runs, the result is unknown, because the commit was sent")
    func killedDuringStatement() async throws {
        // A busy machine must not end the statement by its time limit before the server is killed.
        let database = try await TestDatabase.start(timeout: .seconds(300), isDurable: true)
        try await onThread { try database.pool.runScript("CREATE TABLE t (n bigint)") }
        async let outcome = onThread {
            failure { () throws(DatabaseError) in
                try database.pool.transaction([insert, DatabaseStatement("SELECT 1 FROM pg_sleep(600)")])
            }
        }
        try await onThread { try database.awaitSessions(waitingFor: "PgSleep") }
        database.cluster.kill()
        #expect(try await outcome?.isPossiblyCommitted == true)
        try await onThread {
            try database.cluster.start()
            #expect(try database.pool.run(count).integer(0, 0) == 0)
        }
    }

    @Test("After a restart of the server, idle connections are replaced without an error")
    func restarted() async throws {
        let database = try await TestDatabase.start()
        let pause = DatabaseStatement("SELECT 1 FROM pg_sleep(0.2)")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 { group.addTask { _ = try await onThread { try database.pool.run(pause) } } }
            try await group.waitForAll()
        }
        try await onThread {
            try database.cluster.stop()
            try database.cluster.start()
            for _ in 0..<8 { _ = try database.pool.run(DatabaseStatement("SELECT 1")) }
        }
    }

    @Test("A paused server and an interrupted network are errors within the timeout", arguments: [true, false])
    func paused(isServer: Bool) async throws {
        let database = try await TestDatabase.start(timeout: .seconds(3))
        try await onThread {
            try database.pool.runScript("CREATE TABLE t (n bigint)")
            func expectErrors() {
                // The first call uses an open connection, the second a new one.
                for isPossiblyCommitted in [true, false] {
                    let start = SystemClock.monotonicNanoseconds()
                    let error = failure { () throws(DatabaseError) in try database.pool.run(insert) }
                    #expect(error?.isPossiblyCommitted == isPossiblyCommitted, "\(String(describing: error))")
                    #expect(SystemClock.monotonicNanoseconds() - start < 20_000_000_000)
                }
            }
            if isServer {
                try database.cluster.paused { expectErrors() }
            } else {
                database.proxy.set(.stalled([.toServer, .toClient]))
                expectErrors()
                database.proxy.set(.open)
            }
            #expect(becomesTrue { failure { () throws(DatabaseError) in try database.pool.run(count) } == nil })
        }
    }

    @Test("A call ends within the timeout although many hosts do not respond, and the host that responds is found")
    func silentHosts() async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            let silent = try (0..<8).map { _ in try FaultProxy(to: database.cluster.port) }
            for proxy in silent { proxy.set(.stalled([.toServer])) }
            let ports = silent.map(\.port) + [database.cluster.port]
            let hosts = ports.map { "127.0.0.1:\($0)" }.joined(separator: ",")
            let pool = try Database(
                DatabaseURI(parsing: "postgresql://postgres@\(hosts)/postgres"), connections: 1,
                timeout: .seconds(3))
            defer { pool.close() }
            let start = SystemClock.monotonicNanoseconds()
            let query = DatabaseStatement("SELECT 1")
            let error = failure { () throws(DatabaseError) in try pool.run(query) }
            #expect(error?.isPossiblyCommitted == false, "\(String(describing: error))")
            // libpq waits at least two seconds for each host.
            #expect(SystemClock.monotonicNanoseconds() - start < 12_000_000_000)
            #expect(pollUntil(within: .seconds(120)) { (try? pool.run(query)) == nil ? nil : true } == true)
        }
    }

    @Test("If only the response to the commit is lost, the result is unknown")
    func lostResponse() async throws {
        let database = try await TestDatabase.start(timeout: .seconds(3))
        try await onThread {
            try database.pool.runScript("CREATE TABLE t (n bigint)")
            database.proxy.set(.stalled([.toClient]))
            let error = failure { () throws(DatabaseError) in try database.pool.run(insert) }
            #expect(error?.isPossiblyCommitted == true, "\(String(describing: error))")
            database.proxy.set(.open)
            #expect(try database.pool.run(count).integer(0, 0) == 1)
        }
    }

    @Test("A statement that waits too long for a lock is ended by the server, and nothing has changed")
    func lockTimeout() async throws {
        let database = try await TestDatabase.start(timeout: .seconds(3))
        let other = try database.observer()
        try await onThread { try database.pool.runScript("CREATE TABLE t (n bigint)") }
        async let holder = onThread {
            try other.transaction([
                DatabaseStatement("LOCK TABLE t"), DatabaseStatement("SELECT 1 FROM pg_sleep(8)"),
            ])
        }
        try await onThread {
            try database.awaitSessions(waitingFor: "PgSleep")
            let error = failure { () throws(DatabaseError) in try database.pool.run(insert) }
            #expect(error?.isPossiblyCommitted == false, "\(String(describing: error))")
        }
        _ = try await holder
        let rows = try await onThread { try database.pool.run(count).integer(0, 0) }
        #expect(rows == 0)
    }

    @Test("A server that has become read-only is unavailable, and its connections are replaced")
    func readOnly() async throws {
        let database = try await TestDatabase.start(connections: 1)
        try await onThread {
            try database.pool.runScript(
                "CREATE TABLE t (n bigint); ALTER DATABASE postgres SET default_transaction_read_only = on")
            let first = try database.pool.run(DatabaseStatement("SELECT pg_backend_pid()::bigint")).integer(0, 0)
            let error = failure { () throws(DatabaseError) in
                try database.pool.transaction([DatabaseStatement("SET TRANSACTION READ ONLY"), insert])
            }
            #expect(error?.isPossiblyCommitted == false, "\(String(describing: error))")
            let second = try database.pool.run(DatabaseStatement("SELECT pg_backend_pid()::bigint")).integer(0, 0)
            #expect(first != second)
        }
    }

    @Test("The server ends the transaction of a node that it cannot reach, so that its locks are released")
    func keepalive() async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            let settings = try database.pool.run(
                DatabaseStatement(
                    """
                    SELECT current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'),
                    current_setting('tcp_keepalives_count')
                    """))
            #expect((0..<3).map { settings.text(0, $0) } == ["5", "3", "3"])
        }
    }
}
