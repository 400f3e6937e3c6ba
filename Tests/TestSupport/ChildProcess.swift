import FoundationEssentials
import Glibc
import SystemCalls

/// A child process whose standard error and ending are recorded. It is killed when this object is released.
package final class ChildProcess: Sendable {
    /// How a process ended.
    package enum Ending: Sendable, Equatable {
        case exited(Int32)
        case signaled(Int32)
    }

    private struct State {
        var errorOutput: [UInt8] = []
        var ending: Ending?
    }

    package let identifier: pid_t
    private let state = Monitor(State())

    /// Starts `executable` with empty standard input; its standard output is discarded.
    /// - Parameter descriptors: the descriptors that the process inherits, numbered from 3.
    package init(
        _ executable: String, _ arguments: [String], environment: [String: String] = [:], descriptors: [Int32] = []
    ) throws {
        // The pipe has the close-on-exec flag from the start, so no process started meanwhile keeps it open.
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Errno.current
        }
        let reader = FileDescriptor(owning: ends[0])
        let writer = FileDescriptor(owning: ends[1])
        identifier = try Self.spawn(
            executable, arguments, environment, standardError: writer.rawValue, descriptors: descriptors)
        withExtendedLifetime(writer) {}
        let state = state
        let identifier = identifier
        do {
            _ = try WorkerThread(name: "child-output") {
                Self.collect(from: reader, into: state)
                Self.awaitEnd(of: identifier, into: state)
            }
        } catch {
            Glibc.kill(identifier, SIGKILL)
            throw error
        }
    }

    deinit { kill(SIGKILL) }

    /// Everything written to standard error so far.
    package var errorOutput: String { String(decoding: state.withLock { $0.errorOutput }, as: UTF8.self) }

    package var ending: Ending? { state.withLock { $0.ending } }

    /// Sends a signal, unless the process has ended.
    package func kill(_ signal: Int32) {
        // While this thread has the lock and no ending is recorded, the identifier is not reused for another process.
        state.withLock { if $0.ending == nil { Glibc.kill(identifier, signal) } }
    }

    /// Waits until the process has ended.
    package func awaitEnding(within limit: Duration = .seconds(60)) throws -> Ending {
        guard let ending = state.wait(until: Self.deadline(limit), { $0.ending }) else {
            throw TestFailure("the process still runs; standard error: \(errorOutput)")
        }
        return ending
    }

    /// Waits until `search` returns a value for the text of standard error. Throws an error if the process ends before.
    package func awaitErrorOutput<Found>(
        within limit: Duration = .seconds(60), _ search: (String) -> Found?
    ) throws -> Found {
        let result: Found?? = state.wait(until: Self.deadline(limit)) { state in
            if let found = search(String(decoding: state.errorOutput, as: UTF8.self)) { return .some(found) }
            return state.ending == nil ? nil : .some(nil)
        }
        guard let found = result ?? nil else {
            throw TestFailure("ending \(String(describing: ending)); standard error: \(errorOutput)")
        }
        return found
    }

    /// Waits until standard error contains `text`.
    /// - Returns: all of standard error.
    @discardableResult
    package func awaitErrorOutput(containing text: String) throws -> String {
        try awaitErrorOutput { $0.contains(text) ? $0 : nil }
    }

    /// The peak of the resident memory in bytes (`VmHWM` of proc(5)).
    package func peakResidentBytes() -> Int? {
        guard let status = FileManager.default.contents(atPath: "/proc/\(identifier)/status") else { return nil }
        for line in String(decoding: status, as: UTF8.self).split(separator: "\n") where line.hasPrefix("VmHWM:") {
            return line.split { $0 == " " || $0 == "\t" }.dropFirst().first.flatMap { Int($0) }.map { $0 << 10 }
        }
        return nil
    }

    private static func deadline(_ limit: Duration) -> Int64 {
        let (seconds, attoseconds) = limit.components
        return SystemClock.monotonicNanoseconds() + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    // MARK: - System calls

    private static func spawn(
        _ executable: String, _ arguments: [String], _ environment: [String: String], standardError: Int32,
        descriptors: [Int32]
    ) throws -> pid_t {
        // The numbers of all copies are above the numbers that the process inherits.
        let sources = try descriptors.map { descriptor in
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3 + Int32(descriptors.count))
            guard copy >= 0 else { throw Errno.current }
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
        // By TMPDIR, scripts/run-tests finds the processes of a run that was killed.
        for name in ["LD_LIBRARY_PATH", "TMPDIR"] {
            if let value = getenv(name) { variables[name] = String(cString: value) }
        }
        for (name, value) in environment { variables[name] = value }
        var arguments = ([executable] + arguments).map { strdup($0) } + [nil]
        var entries = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for pointer in arguments + entries { free(pointer) } }
        var identifier = pid_t()
        let error = posix_spawn(&identifier, executable, &actions, &attributes, &arguments, &entries)
        guard error == 0 else { throw Errno(rawValue: error) }
        return identifier
    }

    private static func collect(from reader: FileDescriptor, into state: Monitor<State>) {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = read(reader.rawValue, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return }
            state.withLock { $0.errorOutput += buffer[..<count] }
            state.notifyAll()
        }
    }

    private static func awaitEnd(of identifier: pid_t, into state: Monitor<State>) {
        // The wait does not reap the process, so its number is not reused before its end is recorded.
        var information = siginfo_t()
        while waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) != 0 && errno == EINTR {}
        state.withLock { state in
            var status: Int32 = 0
            waitpid(identifier, &status, 0)
            let signal = status & 0x7F
            state.ending = signal == 0 ? .exited((status >> 8) & 0xFF) : .signaled(signal)
        }
        state.notifyAll()
    }
}
