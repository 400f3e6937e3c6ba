import FoundationEssentials
import Glibc
import SystemCalls

/// A process that was started, its standard error, and its end. It is killed when this object goes.
final class ChildProcess: Sendable {
    /// How a process ended.
    enum Ending: Sendable, Equatable {
        case exited(Int32)
        case signaled(Int32)
    }

    private struct Standing {
        var errorOutput: [UInt8] = []
        var ending: Ending?
    }

    let identifier: pid_t
    private let standing = Monitor(Standing())

    /// Starts `executable`; its standard input is empty, its standard output is thrown away.
    /// - Parameter descriptors: what it finds open from 3 on.
    init(
        _ executable: String, _ arguments: [String], environment: [String: String] = [:], descriptors: [Int32] = []
    ) throws {
        // Closed on exec from the start, so that no process started meanwhile keeps it open.
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw WireFailure.system(.current)
        }
        let reader = FileDescriptor(owning: ends[0])
        let writer = FileDescriptor(owning: ends[1])
        identifier = try Self.spawn(
            executable, arguments, environment, standardError: writer.rawValue, descriptors: descriptors)
        withExtendedLifetime(writer) {}
        let standing = standing
        let identifier = identifier
        do {
            _ = try WorkerThread(name: "child-output") {
                Self.collect(from: reader, into: standing)
                Self.awaitEnd(of: identifier, into: standing)
            }
        } catch {
            Glibc.kill(identifier, SIGKILL)
            throw error
        }
    }

    deinit { kill(SIGKILL) }

    /// Everything written to standard error so far.
    var errorOutput: String { String(decoding: standing.withLock { $0.errorOutput }, as: UTF8.self) }

    var ending: Ending? { standing.withLock { $0.ending } }

    /// Sends a signal, unless the process has ended.
    func kill(_ signal: Int32) {
        // While the lock is held and the end is not recorded, the number belongs to this process.
        standing.withLock { if $0.ending == nil { Glibc.kill(identifier, signal) } }
    }

    /// Waits until the process has ended.
    func awaitEnding(within limit: Duration = .seconds(60)) throws -> Ending {
        guard let ending = standing.wait(until: Deadline(limit).nanoseconds, { $0.ending }) else {
            throw WireFailure.timedOut("the process goes on; standard error: \(errorOutput)")
        }
        return ending
    }

    /// Waits until `search` finds something in standard error. An ended process writes no more.
    func awaitErrorOutput<Found>(
        within limit: Duration = .seconds(60), _ search: (String) -> Found?
    ) throws -> Found {
        let result: Found?? = standing.wait(until: Deadline(limit).nanoseconds) { state in
            if let found = search(String(decoding: state.errorOutput, as: UTF8.self)) { return .some(found) }
            return state.ending == nil ? nil : .some(nil)
        }
        guard let found = result ?? nil else {
            throw WireFailure.server("ending \(String(describing: ending)); standard error: \(errorOutput)")
        }
        return found
    }

    /// The most memory that was resident at once (`VmHWM` of proc(5)).
    func peakResidentBytes() -> Int? {
        guard let status = FileManager.default.contents(atPath: "/proc/\(identifier)/status") else { return nil }
        for line in String(decoding: status, as: UTF8.self).split(separator: "\n") where line.hasPrefix("VmHWM:") {
            return line.split { $0 == " " || $0 == "\t" }.dropFirst().first.flatMap { Int($0) }.map { $0 << 10 }
        }
        return nil
    }

    // MARK: - The system's side

    private static func spawn(
        _ executable: String, _ arguments: [String], _ environment: [String: String], standardError: Int32,
        descriptors: [Int32]
    ) throws -> pid_t {
        // None of them lies where another one has to go.
        let sources = try descriptors.map { descriptor in
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3 + Int32(descriptors.count))
            guard copy >= 0 else { throw WireFailure.system(.current) }
            return FileDescriptor(owning: copy)
        }
        defer { withExtendedLifetime(sources) {} }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, standardError, 2)
        for (index, source) in sources.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, source.rawValue, 3 + Int32(index))
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var variables = ["PATH": "/usr/bin:/bin"]
        if let path = getenv("LD_LIBRARY_PATH") { variables["LD_LIBRARY_PATH"] = String(cString: path) }
        for (name, value) in environment { variables[name] = value }
        var arguments = ([executable] + arguments).map { strdup($0) } + [nil]
        var entries = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for pointer in arguments + entries { free(pointer) } }
        var identifier = pid_t()
        let error = posix_spawn(&identifier, executable, &actions, &attributes, &arguments, &entries)
        guard error == 0 else { throw WireFailure.system(Errno(rawValue: error)) }
        return identifier
    }

    private static func collect(from reader: FileDescriptor, into standing: Monitor<Standing>) {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = read(reader.rawValue, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return }
            standing.withLock { $0.errorOutput += buffer[..<count] }
            standing.notifyAll()
        }
    }

    private static func awaitEnd(of identifier: pid_t, into standing: Monitor<Standing>) {
        // Waits without reaping, so that the number stays this process's until its end is recorded.
        var information = siginfo_t()
        while waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) != 0 && errno == EINTR {}
        standing.withLock { state in
            var status: Int32 = 0
            waitpid(identifier, &status, 0)
            let signal = status & 0x7F
            state.ending = signal == 0 ? .exited((status >> 8) & 0xFF) : .signaled(signal)
        }
        standing.notifyAll()
    }
}
