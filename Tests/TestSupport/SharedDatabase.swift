import SystemCalls

/// An empty database of a server that tests share as long as one of them uses it, because its start takes long.
package final class SharedDatabase: Sendable {
    private struct Shared {
        weak var server: PostgreSQLCluster?
        var databases = 0
    }

    private static let shared = Monitor(Shared())

    package let server: PostgreSQLCluster
    /// The URI of the database, over the Unix socket.
    package let uri: String

    package init() throws {
        (server, uri) = try Self.shared.withLock { shared in
            let server = try shared.server ?? PostgreSQLCluster(settings: ["max_connections": "200"])
            shared.server = server
            shared.databases += 1
            let name = "test\(shared.databases)"
            let process = try ChildProcess(
                PostgreSQLCluster.programs + "/createdb",
                ["-h", server.directory, "-p", "\(server.port)", "-U", "postgres", name])
            guard try process.awaitEnding() == .exited(0) else { throw TestFailure(process.errorOutput) }
            return (server, server.uri().dropLast("postgres".count) + name)
        }
    }
}
