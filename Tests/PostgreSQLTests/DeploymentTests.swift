import PostgreSQL
import TestSupport
import Testing

@Suite("Deployments", .enabled(if: PostgreSQLCluster.isRequired, "takes long: make test-scale runs it"))
struct DeploymentTests {
    @Test(
        "Transactions work through PgBouncer in transaction mode",
        .enabled(if: PgBouncer.isInstalled, "needs pgbouncer"))
    func pgBouncer() async throws {
        let cluster = try await onThread { try PostgreSQLCluster() }
        let bouncer = try await onThread { try PgBouncer(cluster, connections: 2) }
        let pool = try Database(
            DatabaseURI(parsing: "postgresql://postgres@127.0.0.1:\(bouncer.port)/postgres"), connections: 6,
            timeout: .seconds(30))
        try await onThread { try pool.runScript("CREATE TABLE t (n bigint, data bytea); INSERT INTO t VALUES (0, '')") }
        let update = DatabaseStatement("UPDATE t SET n = n + 1")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for thread in 0..<6 {
                group.addTask {
                    try await onThread {
                        let data = [UInt8](repeating: UInt8(thread), count: 300 << 10)
                        for round in 0..<20 {
                            let statements = [
                                update, DatabaseStatement("UPDATE t SET data = $1 RETURNING data", [.bytes(data)]),
                                DatabaseStatement("SELECT 1 / $1", [.integer(Int64(round % 2))]),
                            ]
                            if round % 2 == 0 {
                                let error = failure { () throws(DatabaseError) in try pool.transaction(statements) }
                                #expect(error?.sqlState == "22012", "\(String(describing: error))")
                            } else {
                                let rows = try pool.transaction(statements)
                                #expect(rows[1].bytes(0, 0) == data)
                            }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let count = try await onThread { try pool.run(DatabaseStatement("SELECT n FROM t")).integer(0, 0) }
        #expect(count == 60)
    }

    @Test("With sslmode=verify-full only a server with a trusted certificate for its address is accepted")
    func certificates() async throws {
        let trusted = try await onThread { try SelfSignedCertificate() }
        let other = try await onThread { try SelfSignedCertificate() }
        let cluster = try await onThread {
            try PostgreSQLCluster(
                settings: [
                    "ssl": "on", "ssl_cert_file": "own.crt", "ssl_key_file": "own.key",
                    "listen_addresses": "127.0.0.1,127.0.0.2",
                ],
                files: ["own.crt": trusted.certificate, "own.key": trusted.key])
        }
        func connect(_ host: String, _ mode: String, _ root: SelfSignedCertificate) async throws -> DatabaseError? {
            let uri =
                "postgresql://postgres@\(host):\(cluster.port)/postgres?sslmode=\(mode)&sslrootcert=\(root.certificate)"
            let pool = try Database(DatabaseURI(parsing: uri))
            let query = DatabaseStatement("SELECT 1 / ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
            return try await onThread { failure { () throws(DatabaseError) in try pool.run(query) } }
        }
        #expect(try await connect("127.0.0.1", "verify-full", trusted) == nil)
        #expect(try await connect("127.0.0.2", "verify-ca", trusted) == nil)
        #expect(try await connect("127.0.0.2", "verify-full", trusted)?.isPossiblyCommitted == false)
        let error = try await connect("127.0.0.1", "verify-full", other)
        #expect(error?.isPossiblyCommitted == false && "\(error as Any)".contains("certificate"))
    }

    @Test("A password from a file is used, and the error for a wrong one does not contain it")
    func passwords() async throws {
        let directory = try TemporaryDirectory()
        let access = try directory.file("hba", "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n".utf8)
        let cluster = try await onThread { try PostgreSQLCluster(files: ["pg_hba.conf": access]) }
        try await onThread {
            let administrator = try Database(DatabaseURI(parsing: cluster.uri()))
            try administrator.runScript("CREATE USER node PASSWORD 'hunter2'")
            func connect(_ password: String) throws -> DatabaseError? {
                let file = try directory.file("passwords-\(password.hashValue)", "*:*:*:node:\(password)\n".utf8)
                let uri = cluster.uri(overTCP: true, user: "node", parameters: "passfile=\(file)")
                let pool = try Database(DatabaseURI(parsing: uri))
                return failure { () throws(DatabaseError) in try pool.run(DatabaseStatement("SELECT 1")) }
            }
            #expect(try connect("hunter2") == nil)
            let error = try connect("hunter3")
            #expect(error?.isPossiblyCommitted == false && "\(error as Any)".contains("password"))
            #expect(!"\(error as Any)".contains("hunter3\""))
        }
    }

    @Test("The next host of the URI is used if the first one cannot be reached")
    func severalHosts() async throws {
        let cluster = try await onThread { try PostgreSQLCluster() }
        try await onThread {
            let uri = "postgresql://postgres@127.0.0.1:\(try FixedPort.next()),127.0.0.1:\(cluster.port)/postgres"
            let pool = try Database(DatabaseURI(parsing: uri + "?target_session_attrs=read-write"))
            _ = try pool.run(DatabaseStatement("SELECT 1"))
        }
    }
}
