import FoundationEssentials
import Glibc
import SystemCalls

/// A private server of PostgreSQL with an empty database `postgres`. It is killed and removed when this object is
/// released.
package final class PostgreSQLCluster: Sendable {
    /// The directory of the programs of the newest installed version, which Debian does not add to PATH.
    package static let programs: String = {
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
        return "/usr/lib/postgresql/\(versions.compactMap { Int($0) }.max() ?? 15)/bin"
    }()

    /// Whether tests fail, instead of being skipped, if a program is missing, and long tests run: the variable ONWARD_SCALE
    /// is 1, as in `make test-scale`.
    package static var isRequired: Bool { ProcessInfo.processInfo.environment["ONWARD_SCALE"] == "1" }

    /// Whether a server can be started.
    package static var isInstalled: Bool { isRequired || access(programs + "/postgres", X_OK) == 0 }

    /// The reason why the tests are skipped.
    package static let requirement = "needs PostgreSQL, which `make test` installs"

    /// Held while a server is created, which occupies a processor: tests run in parallel.
    private static let initialization = Monitor(())

    /// The running servers by their directories. They are killed when this process ends: the last test may end it before
    /// the objects are released.
    private static let running: Monitor<[String: ChildProcess]> = {
        atexit {
            for (directory, server) in PostgreSQLCluster.running.withLock({ $0 }) {
                PostgreSQLCluster.end(server)
                try? FileManager.default.removeItem(atPath: directory)
            }
        }
        return Monitor([:])
    }()

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
    ///   - primary: a server whose only standby this server becomes. From then on the primary confirms a commit when it is
    ///     durable on both.
    package init(
        isDurable: Bool = false, settings: [String: String] = [:], files: [String: String] = [:],
        copying primary: PostgreSQLCluster? = nil
    ) throws {
        temporary = try TemporaryDirectory()
        directory = temporary.path
        port = try FixedPort.next()
        var all = [
            "fsync": isDurable ? "on" : "off", "listen_addresses": "127.0.0.1", "port": "\(port)",
            "unix_socket_directories": directory, "max_connections": "50", "shared_buffers": "16MB",
            "log_min_messages": "warning", "deadlock_timeout": "100ms",
            // A killed server leaves its shared memory in its directory, not in /dev/shm.
            "dynamic_shared_memory_type": "mmap",
        ]
        for (name, value) in settings { all[name] = value }
        self.settings = all
        // The server refuses to run as root.
        try Self.assign(directory)
        var (program, arguments) = (
            "/initdb", ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
        )
        if let primary {
            program = "/pg_basebackup"
            arguments =
                ["-h", primary.directory, "-p", "\(primary.port)", "-U", "postgres", "-D", data]
                + ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        }
        try Self.initialization.withLock { _ in
            let process = try Self.child(Self.programs + program, arguments)
            guard try process.awaitEnding() == .exited(0) else { throw TestFailure(process.errorOutput) }
        }
        for (name, source) in files {
            try? FileManager.default.removeItem(atPath: data + "/" + name)
            try FileManager.default.copyItem(atPath: source, toPath: data + "/" + name)
            try Self.assign(data + "/" + name)
        }
        try start()
        if let primary {
            try primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
            try primary.run("SELECT pg_reload_conf()")
        }
    }

    deinit {
        kill()
        Self.running.withLock { $0[directory] = nil }
    }

    private var data: String { directory + "/data" }

    /// The URI of the database, over the Unix socket or over TCP.
    package func uri(overTCP: Bool = false, user: String = "postgres", parameters: String = "") -> String {
        let host = overTCP ? "127.0.0.1" : directory.split(separator: "/").map { "%2F" + $0 }.joined()
        return "postgresql://\(user)@\(host):\(port)/postgres\(parameters.isEmpty ? "" : "?" + parameters)"
    }

    /// Starts the server again after ``kill()`` or ``stop()``.
    package func start() throws {
        let options = settings.sorted { $0.key < $1.key }.flatMap { ["-c", "\($0.key)=\($0.value)"] }
        let started = try Self.child(Self.programs + "/postgres", ["-D", data] + options)
        server.withLock { $0 = started }
        Self.running.withLock { $0[directory] = started }
        try started.awaitErrorOutput(containing: "ready to accept")
    }

    /// Makes a standby server accept changes.
    package func promote() throws { try run("SELECT pg_promote()") }

    private func run(_ statement: String) throws {
        let process = try ChildProcess(
            Self.programs + "/psql", ["-qX", "-h", directory, "-p", "\(port)", "-U", "postgres", "-c", statement])
        guard try process.awaitEnding() == .exited(0) else { throw TestFailure(process.errorOutput) }
    }

    /// Ends all processes of the server at once, without a shutdown.
    package func kill() {
        if let server = server.withLock({ $0 }) { Self.end(server) }
    }

    private static func end(_ server: ChildProcess) {
        let workers = freeze(server)
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
        let workers = Self.freeze(server)
        defer {
            for worker in workers { Glibc.kill(worker, SIGCONT) }
            server.kill(SIGCONT)
        }
        return try body()
    }

    /// Runs a statement as an administrator does.
    /// - Returns: the lines of the result, with `|` between columns.
    package func query(_ sql: String) throws -> [String] {
        let arguments = [
            "-h", directory, "-p", "\(port)", "-U", "postgres", "-d", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1",
            "-c",
            sql,
        ]
        // ChildProcess collects only standard error.
        let command = ["-c", "exec \"$0\" \"$@\" 1>&2", Self.programs + "/psql"] + arguments
        let process = try ChildProcess("/bin/sh", command)
        guard try process.awaitEnding() == .exited(0) else { throw TestFailure(process.errorOutput) }
        return process.errorOutput.split(separator: "\n").map(String.init)
    }

    /// Stops the server, and then the processes that it has started. Before it has stopped, it could start others.
    /// - Returns: these processes.
    private static func freeze(_ server: ChildProcess) -> [pid_t] {
        let process = "/proc/\(server.identifier)"
        let children = process + "/task/\(server.identifier)/children"
        server.kill(SIGSTOP)
        _ = pollUntil(within: .seconds(10)) {
            server.ending != nil || textOfFile(process + "/stat").contains(") T ") ? () : nil
        }
        if server.ending != nil { return [] }
        let workers = textOfFile(children).split(separator: " ").compactMap { pid_t($0) }
        for worker in workers { Glibc.kill(worker, SIGSTOP) }
        return workers
    }

    /// Makes the user of the server the owner of a file.
    package static func assign(_ path: String) throws {
        guard getuid() == 0 else { return }
        guard let account = getpwnam("postgres") else { throw TestFailure("there is no user postgres") }
        guard chown(path, account.pointee.pw_uid, account.pointee.pw_gid) == 0 else { throw Errno.current }
    }

    /// Starts a program as the user of the server.
    package static func child(_ program: String, _ arguments: [String]) throws -> ChildProcess {
        guard getuid() == 0 else { return try ChildProcess(program, arguments) }
        return try ChildProcess(
            "/usr/bin/setpriv", ["--reuid=postgres", "--regid=postgres", "--clear-groups", program] + arguments)
    }
}
