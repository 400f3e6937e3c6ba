import CLinux
import Glibc

/// A command in a separate process group, so that it and all processes that it started can be ended together.
package final class ProcessGroup: Sendable {
    /// How the command ended.
    package enum Ending: Sendable, Hashable, CustomStringConvertible {
        case exited(Int32)
        case signaled(Int32)

        package var description: String {
            switch self {
            case .exited(let status): "exited with status \(status)"
            case .signaled(let signal): "was ended by signal \(signal)"
            }
        }
    }

    /// The groups whose commands have not been reaped. While this lock is held, no command is started, and no ID of such
    /// a group can belong to another process. A command is reaped only when its group is killed, because the processes
    /// that it started can outlive it.
    private static let unreaped = Monitor<Set<pid_t>>([])

    /// The ID of the group, and of the process that leads it.
    package let identifier: pid_t
    private let state = Monitor(State())

    private struct State {
        var ending: Ending?
        var isKilled = false
    }

    /// Starts `/bin/sh -c command` with the environment of this process. Its input is empty; its output is appended to
    /// the file `output`.
    package convenience init(shell command: String, output: String) throws(Errno) {
        let file = try FileDescriptor.open(output, [.writeOnly, .create, .append])
        try self.init(
            program: "/bin/sh", arguments: ["-c", command], environment: nil,
            standard: [try FileDescriptor.open("/dev/null", .readOnly), file, file])
    }

    /// Starts a program. All signals have their default actions, and none is blocked.
    /// - Parameters:
    ///   - program: the path of the program.
    ///   - arguments: the arguments after the name of the program.
    ///   - environment: the variables as `NAME=VALUE`; `nil` for those of this process.
    ///   - standard: the descriptors that become 0, 1 and 2 of the program. It has no others.
    /// - Throws: the error of posix_spawn(3), such as `ENOENT` or `EACCES`; `EINVAL` if a text has a NUL byte.
    init(
        program: String, arguments: [String], environment: [String]?, standard: [FileDescriptor]
    ) throws(Errno) {
        for text in [program] + arguments + (environment ?? []) where text.utf8.contains(0) { throw .invalidArgument }
        // The numbers are above 2, so that no action replaces a descriptor that a later one needs.
        var copies: [FileDescriptor] = []
        for descriptor in standard { copies.append(try descriptor.duplicate(from: 3)) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, copy) in copies.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, copy.rawValue, Int32(number))
        }
        posix_spawn_file_actions_addclosefrom_np(&actions, Int32(copies.count))
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP))
        var texts = ([program] + arguments).map { (text: String) in strdup(text) } + [nil]
        defer { for text in texts { free(text) } }
        var variables = (environment ?? []).map { (text: String) in strdup(text) } + [nil]
        defer { for variable in variables { free(variable) } }
        identifier = try Self.unreaped.withLock { (unreaped) throws(Errno) in
            var identifier = pid_t()
            let error =
                environment == nil
                ? posix_spawn(&identifier, program, &actions, &attributes, &texts, environ)
                : posix_spawn(&identifier, program, &actions, &attributes, &texts, &variables)
            guard error == 0 else { throw Errno(rawValue: error) }
            unreaped.insert(identifier)
            return identifier
        }
        withExtendedLifetime(copies) {}
    }

    deinit { kill() }

    /// Sends a signal to every process of the group, unless the group was killed.
    package func signal(_ number: Int32) {
        // Until the command is reaped, the ID cannot belong to another process.
        state.withLock { if !$0.isKilled { Glibc.kill(-identifier, number) } }
    }

    /// Ends the group immediately, as a crash would, and waits until the command is gone. If the command has ended, this
    /// ends the processes that it started.
    package func kill() {
        state.withLock { state in
            guard !state.isKilled else { return }
            Glibc.kill(-identifier, SIGKILL)
            state.ending = ending(0)
            state.isKilled = true
            Self.unreaped.withLock { unreaped in
                _ = try? retryingOnInterrupt { waitpid(identifier, nil, 0) }
                unreaped.remove(identifier)
            }
        }
    }

    /// Whether any process of the group still runs. The processes that the command's shell started can outlive it.
    ///
    /// A process that has ended counts as not running, even if its parent has not yet waited for it: its sockets are
    /// already closed (proc_pid_stat(5)).
    package var isRunning: Bool { Self.isRunning(identifier) }

    private static func isRunning(_ group: pid_t) -> Bool {
        guard let names = try? FileDescriptor.open("/proc", [.readOnly, .directory]).entryNames() else { return false }
        return names.contains { name in
            guard let process = pid_t(name), let file = try? FileDescriptor.open("/proc/\(process)/stat", [.readOnly]),
                let bytes = try? file.content(atMost: 4096)
            else { return false }
            // The name in parentheses may contain any character; state, parent and group follow it.
            let fields = String(decoding: bytes, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
            return fields.count > 2 && pid_t(fields[2]) == group && !["Z", "X"].contains(fields[0])
        }
    }

    /// How the command ended; `nil` while it runs.
    package var currentEnding: Ending? {
        state.withLock { state in
            if state.ending == nil { state.ending = ending(WNOHANG) }
            return state.ending
        }
    }

    /// How the command ended. The command is not reaped (waitid(2)).
    /// - Parameter options: `WNOHANG` to return `nil` if it has not ended; 0 to wait.
    private func ending(_ options: Int32) -> Ending? {
        var information = siginfo_t()
        let isFound = try? retryingOnInterrupt {
            waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT | options)
        }
        guard isFound != nil, information.si_signo == SIGCHLD else { return nil }
        let status = information._sifields._sigchld.si_status
        return information.si_code == Int32(CLD_EXITED) ? .exited(status) : .signaled(status)
    }

    /// Kills all groups that ``kill()`` has not killed, waits at most 10 s until none of their processes runs, and calls
    /// `body`, which has to end this process. No command is started during this call.
    package static func killAll(_ body: () -> Never) -> Never {
        unreaped.withLock { groups in
            for group in groups { Glibc.kill(-group, SIGKILL) }
            for group in groups { waitpid(group, nil, 0) }
            let deadline = SystemClock.monotonicNanoseconds() + 10_000_000_000
            while groups.contains(where: isRunning), SystemClock.monotonicNanoseconds() < deadline {
                SystemClock.pause(nanoseconds: 1_000_000)
            }
            body()
        }
    }
}
