import FoundationEssentials
import SystemCalls

/// An empty database of a server that all tests of this process share, because its start takes long. The database is
/// removed when this object is released.
package final class SharedDatabase: Sendable {
    private struct Shared {
        var server: PostgreSQLCluster?
        var databases = 0
    }

    private static let shared = Monitor(Shared())

    package let server: PostgreSQLCluster
    /// The URI of the database, over the Unix socket.
    package let uri: String
    private let name: String

    package init() throws {
        (server, name) = try Self.shared.withLock { shared in
            let server = try shared.server ?? PostgreSQLCluster(settings: ["max_connections": "400"])
            shared.server = server
            shared.databases += 1
            return (server, "test\(shared.databases)")
        }
        uri = server.uri().dropLast("postgres".count) + name
        _ = try run("createdb", name)
    }

    /// The URI of the database over TCP, if a proxy has this port.
    func uri(port: UInt16) -> String { "postgresql://postgres@127.0.0.1:\(port)/\(name)" }

    deinit { _ = try? run("dropdb", "--force", name) }

    /// Runs a statement, and returns the columns of its rows. The bytes of a value of type `bytea` are hexadecimal digits
    /// after `\x`.
    @discardableResult
    package func query(_ statement: String) throws -> [[String]] {
        try run("psql", "-d", name, "-qAtX", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c", statement)
            .split(separator: "\n").map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
    }

    /// A command of a shell that begins a call of psql.
    package var command: String {
        "\(PostgreSQLCluster.programs)/psql -qX -h \(server.directory) -p \(server.port) -U postgres -d \(name)"
    }

    /// The content of the database as text.
    package func dump() throws -> String { try run("pg_dump", "-d", name) }

    /// Runs a program of PostgreSQL, and returns its output.
    private func run(_ program: String, _ arguments: String...) throws -> String {
        let process = try ChildProcess(
            "/bin/sh",
            [
                "-c", "exec \"$0\" \"$@\" >&2", PostgreSQLCluster.programs + "/" + program, "-h", server.directory,
                "-p",
                "\(server.port)", "-U", "postgres",
            ] + arguments)
        guard try process.awaitEnding() == .exited(0) else { throw TestFailure(process.errorOutput) }
        return process.errorOutput
    }
}
