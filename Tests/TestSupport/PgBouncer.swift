import Glibc

/// A private PgBouncer in transaction mode before a server.
package final class PgBouncer: Sendable {
    private static let program = "/usr/sbin/pgbouncer"

    /// Whether PgBouncer can be started. With `ONWARD_SCALE=1` a missing program is a failure.
    package static let isInstalled = PostgreSQLCluster.isRequired || access(program, X_OK) == 0

    package let port: UInt16
    private let directory: TemporaryDirectory
    private let process: ChildProcess

    /// - Parameter connections: the limit for the connections of PgBouncer to the server.
    package init(_ cluster: PostgreSQLCluster, connections: Int) throws {
        directory = try TemporaryDirectory()
        port = try FixedPort.next()
        let settings = """
            [databases]
            postgres = host=127.0.0.1 port=\(cluster.port) dbname=postgres user=postgres
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = \(port)
            unix_socket_dir =
            auth_type = any
            pool_mode = transaction
            default_pool_size = \(connections)
            """
        let file = try directory.file("pgbouncer.ini", settings.utf8)
        // PgBouncer does not run as root.
        for path in [directory.path, file] { try PostgreSQLCluster.assign(path) }
        process = try PostgreSQLCluster.child(Self.program, [file])
        try process.awaitErrorOutput(containing: "process up")
    }
}
