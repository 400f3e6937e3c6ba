import FoundationEssentials
import Glibc
import SystemCalls

/// A private server of PostgreSQL with an empty database `postgres`. It is killed and removed when this object is
/// released.
package final class PostgreSQLCluster: Sendable {
    /// The directory of the programs, which Debian does not add to PATH.
    package static let programs = "/usr/lib/postgresql/15/bin"

    /// Whether the tests that need a server run. With the variable ONWARD_SCALE=1 they always run, and fail if the
    /// programs are missing.
    package static var isAvailable: Bool {
        access(programs + "/postgres", X_OK) == 0 || ProcessInfo.processInfo.environment["ONWARD_SCALE"] == "1"
    }

    /// Why the tests are skipped.
    package static let requirement = "needs postgresql-15; `scripts/system-packages scale` installs it"

    /// The directory of the Unix socket.
    package let directory: String
    package let port: UInt16
    private let temporary: TemporaryDirectory
    private let settings: [String: String]
    private let server = Monitor<ChildProcess?>(nil)

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - isDurable: whether it survives a power loss (`fsync`). It survives the end of its processes in any case.
    ///   - settings: settings of postgresql.conf.
    ///   - files: files whose copies become files of the server, such as keys: name to path.
    package init(
        isDurable: Bool = false, settings: [String: String] = [:], files: [String: String] = [:]
    ) throws {
        temporary = try TemporaryDirectory()
        directory = temporary.path
        port = try FixedPort.next()
        var all = [
            "fsync": isDurable ? "on" : "off", "listen_addresses": "127.0.0.1", "port": "\(port)",
            "unix_socket_directories": directory, "max_connections": "50", "shared_buffers": "16MB",
            "log_min_messages": "warning", "deadlock_timeout": "100ms",
        ]
        for (name, value) in settings { all[name] = value }
        self.settings = all
        // The server refuses to run as root.
        if getuid() == 0 {
            guard let account = getpwnam("postgres") else { throw TestFailure("there is no user postgres") }
            chown(directory, account.pointee.pw_uid, account.pointee.pw_gid)
        }
        try run(
            Self.programs + "/initdb",
            ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"])
        for (name, source) in files { try run("/usr/bin/install", ["-m", "600", source, data + "/" + name]) }
        try start()
    }

    deinit { kill() }

    private var data: String { directory + "/data" }

    /// The URI of the database, over the Unix socket or over TCP.
    package func uri(overTCP: Bool = false, user: String = "postgres", parameters: String = "") -> String {
        let host = overTCP ? "127.0.0.1" : directory.split(separator: "/").map { "%2F" + $0 }.joined()
        return "postgresql://\(user)@\(host):\(port)/postgres\(parameters.isEmpty ? "" : "?" + parameters)"
    }

    /// Starts the server again after ``kill()`` or ``stop()``.
    package func start() throws {
        let options = settings.sorted { $0.key < $1.key }.flatMap { ["-c", "\($0.key)=\($0.value)"] }
        let started = try child(Self.programs + "/postgres", ["-D", data] + options)
        server.withLock { $0 = started }
        try started.awaitErrorOutput { $0.contains("ready to accept connections") ? () : nil }
    }

    /// Ends all processes of the server at once, without a shutdown.
    package func kill() {
        guard let server = server.withLock({ $0 }) else { return }
        let workers = processes
        server.kill(SIGKILL)
        for worker in workers { Glibc.kill(worker, SIGKILL) }
        _ = try? server.awaitEnding()
        // A server does not start while a process of the previous one exists.
        _ = pollUntil(within: .seconds(10)) { workers.allSatisfy { Glibc.kill($0, 0) != 0 } ? () : nil }
    }

    /// Stops the server as an administrator does: it ends the sessions and their transactions.
    package func stop() throws {
        guard let server = server.withLock({ $0 }) else { return }
        server.kill(SIGINT)
        _ = try server.awaitEnding()
    }

    /// Runs `body` while no process of the server runs, as if the network or the computer of the server hung.
    package func paused<Result>(_ body: () throws -> Result) throws -> Result {
        guard let server = server.withLock({ $0 }) else { throw TestFailure("the server does not run") }
        server.kill(SIGSTOP)
        let workers = processes
        for worker in workers { Glibc.kill(worker, SIGSTOP) }
        defer {
            for worker in workers { Glibc.kill(worker, SIGCONT) }
            server.kill(SIGCONT)
        }
        return try body()
    }

    /// What the server has written to its log.
    package var log: String { server.withLock { $0?.errorOutput ?? "" } }

    /// The processes that the server has started.
    private var processes: [pid_t] {
        guard let identifier = server.withLock({ $0?.ending == nil ? $0?.identifier : nil }),
            let list = FileManager.default.contents(atPath: "/proc/\(identifier)/task/\(identifier)/children")
        else { return [] }
        return String(decoding: list, as: UTF8.self).split(separator: " ").compactMap { pid_t($0) }
    }

    private func run(_ program: String, _ arguments: [String]) throws {
        let process = try child(program, arguments)
        guard try process.awaitEnding() == .exited(0) else {
            throw TestFailure("\(program) failed: \(process.errorOutput)")
        }
    }

    /// Starts a program as the user of the server.
    private func child(_ program: String, _ arguments: [String]) throws -> ChildProcess {
        guard getuid() == 0 else { return try ChildProcess(program, arguments) }
        return try ChildProcess(
            "/usr/bin/setpriv", ["--reuid=postgres", "--regid=postgres", "--clear-groups", program] + arguments)
    }
}
