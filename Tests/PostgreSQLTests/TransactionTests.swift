import PostgreSQL
import SystemCalls
import TestSupport
import Testing

@Suite("Transactions", .enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct TransactionTests {
    @Test("If one statement of a transaction fails, nothing changes and the connection is used again")
    func failedStatement() async throws {
        let database = try await TestDatabase.start(connections: 1)
        try await onThread {
            let pool = database.pool
            try pool.runScript("CREATE TABLE t (n bigint PRIMARY KEY)")
            let session = try pool.run(DatabaseStatement("SELECT pg_backend_pid()")).integer(0, 0)
            for position in 0..<3 {
                var statements = (0..<2).map { DatabaseStatement("INSERT INTO t VALUES ($1)", [.integer($0)]) }
                statements.insert(DatabaseStatement("INSERT INTO t VALUES (NULL)"), at: position)
                let error = failure { () throws(DatabaseError) in try pool.transaction(statements) }
                #expect(error?.sqlState == "23502", "\(String(describing: error))")
                #expect(try pool.run(DatabaseStatement("SELECT count(*) FROM t")).integer(0, 0) == 0)
            }
            #expect(try pool.run(DatabaseStatement("SELECT pg_backend_pid()")).integer(0, 0) == session)
        }
    }

    @Test("If the commit fails because of a deferred constraint, nothing changes")
    func failedCommit() async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            let pool = database.pool
            try pool.runScript("CREATE TABLE t (n bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)")
            let insert = DatabaseStatement("INSERT INTO t VALUES (1)")
            let error = failure { () throws(DatabaseError) in try pool.transaction([insert, insert]) }
            #expect(error?.sqlState == "23505", "\(String(describing: error))")
            #expect(try pool.run(DatabaseStatement("SELECT count(*) FROM t")).integer(0, 0) == 0)
        }
    }

    @Test("The code of an error that a function raises, but none of the values in its details, is reported")
    func raisedError() async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            let pool = database.pool
            try pool.runScript(
                """
                CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'text' USING ERRCODE = 'ON001', DETAIL = 'secret'; END $$
                """)
            let error = failure { () throws(DatabaseError) in try pool.run(DatabaseStatement("SELECT f()")) }
            #expect(error == .failed(sqlState: "ON001", message: "text"))
        }
    }

    @Test("Of two transactions in a deadlock, the one that the server ends is repeated")
    func deadlock() async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            try database.pool.runScript("CREATE TABLE t (n bigint, c bigint); INSERT INTO t VALUES (1, 0), (2, 0)")
        }
        @Sendable func update(_ row: Int64) -> DatabaseStatement {
            DatabaseStatement("UPDATE t SET c = c + 1 WHERE n = $1", [.integer(row)])
        }
        let pause = DatabaseStatement("SELECT 1 FROM pg_sleep(0.3)")
        async let first = onThread { try database.pool.transaction([update(1), pause, update(2)]) }
        async let second = onThread { try database.pool.transaction([update(2), pause, update(1)]) }
        _ = try await (first, second)
        try await onThread {
            let sum = try database.pool.run(DatabaseStatement("SELECT sum(c)::bigint FROM t")).integer(0, 0)
            #expect(sum == 4)
            let deadlocks = DatabaseStatement(
                "SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres' AND deadlocks > 0")
            let wasDeadlock = try becomesTrue { try database.pool.run(deadlocks).count > 0 }
            #expect(wasDeadlock)
        }
    }

    @Test("Transactions that the server cannot serialize are repeated until each has counted once")
    func serializationFailures() async throws {
        let database = try await TestDatabase.start()
        let count = Int64(60)
        try await onThread {
            try database.pool.runScript("CREATE TABLE t (n bigint); INSERT INTO t VALUES (0)")
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<3 {
                group.addTask {
                    try await onThread {
                        for _ in 0..<count / 3 {
                            _ = try database.pool.transaction([
                                DatabaseStatement("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"),
                                DatabaseStatement("UPDATE t SET n = (SELECT n FROM t) + 1"),
                            ])
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let counted = try await onThread { try database.pool.run(DatabaseStatement("SELECT n FROM t")).integer(0, 0) }
        #expect(counted == count)
    }

    @Test("Scripts run one after the other, and a failed script changes nothing")
    func scripts() async throws {
        let database = try await TestDatabase.start()
        let script = """
            CREATE TABLE IF NOT EXISTS t (n bigint);
            INSERT INTO t SELECT count(*) FROM t;
            """
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { try await onThread { try database.pool.runScript(script) } } }
            try await group.waitForAll()
        }
        try await onThread {
            let pool = database.pool
            let error = failure { () throws(DatabaseError) in
                try pool.runScript("INSERT INTO t VALUES (100); INSERT INTO missing VALUES (1)")
            }
            #expect(error?.sqlState == "42P01")
            let rows = try pool.run(DatabaseStatement("SELECT array_agg(n ORDER BY n) FROM t"))
            #expect(rows[0, 0] == .integers(Array(0..<8)))
        }
    }

    @Test("More threads than connections share the pool, and a closed pool is an error")
    func pool() async throws {
        let database = try await TestDatabase.start(connections: 2)
        let query = DatabaseStatement("SELECT pg_backend_pid()::bigint FROM pg_sleep(0.02)")
        let sessions = try await withThrowingTaskGroup(of: Int64?.self) { group in
            for _ in 0..<12 { group.addTask { try await onThread { try database.pool.run(query).integer(0, 0) } } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(sessions.count <= 2)
        await #expect(throws: DatabaseError.self) {
            database.pool.close()
            return try await onThread { try database.pool.run(query) }
        }
        try await onThread {
            let observer = try database.observer()
            let others = DatabaseStatement(
                "SELECT 1 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
            #expect(try becomesTrue { try observer.run(others).count == 0 }, "connections of the closed pool are open")
        }
    }

    @Test(
        "A commit waits for the disk and for a synchronous standby server, whatever the default of the role is",
        arguments: ["off", "local", "remote_write", "on", "remote_apply"])
    func durableCommit(level: String) async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            _ = try database.cluster.query("ALTER ROLE postgres SET synchronous_commit = \(level)")
            let pool = database.pool
            let show = DatabaseStatement("SHOW synchronous_commit")
            let expected = level == "remote_apply" ? level : "on"
            #expect(try pool.run(show).text(0, 0) == expected)
            // A transaction can have another level, which does not remain.
            let outcome = try pool.transaction([DatabaseStatement("SET LOCAL synchronous_commit = off"), show])
            #expect(outcome[1].text(0, 0) == "off")
            #expect(try pool.run(show).text(0, 0) == expected)
            try pool.runScript("CREATE TABLE t AS SELECT current_setting('synchronous_commit') AS level")
            #expect(try pool.run(DatabaseStatement("SELECT level FROM t")).text(0, 0) == expected)
        }
    }
}
