import Glibc

/// Operations on the entire process.
package enum ProcessControl {
    /// Raises the limit of open descriptors to the hard limit.
    /// - Returns: the limit afterwards; `nil` if it is unknown.
    @discardableResult
    package static func raiseDescriptorLimit() -> UInt64? {
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0 else { return nil }
        let former = limit.rlim_cur
        limit.rlim_cur = limit.rlim_max
        return UInt64(setrlimit(resource, &limit) == 0 ? limit.rlim_cur : former)
    }

    /// Opens /dev/null for those of the descriptors 0, 1 and 2 that are closed. Otherwise a file or socket could get
    /// such a number, and receive output that is meant for people. Reading 0 and writing 1 and 2 still fail with
    /// `EBADF`.
    package static func occupyStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // open(2) returns the lowest free number, which is `descriptor`.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// The process ID.
    package static var identifier: Int32 { getpid() }

    /// Removes environment variables, so that child processes do not inherit them. Call it before any other thread is
    /// started (unsetenv(3)).
    package static func removeVariables(_ names: [String]) { for name in names { unsetenv(name) } }

    /// The effective user ID.
    package static var effectiveUser: UInt32 { geteuid() }

    /// The effective group ID.
    package static var effectiveGroup: UInt32 { getegid() }

    /// The signals that request the end of a process.
    package static let endSignals = [SIGTERM, SIGINT]
    /// The signal that requests a server to read its files again.
    package static let reloadSignal = SIGHUP
}

extension ProcessControl {
    /// The start of this process in seconds since 1970, with a precision of 0.01 s; `nil` if the system does not report
    /// it (proc(5)).
    package static func startSeconds() -> Double? {
        guard let file = try? FileDescriptor.open("/proc/self/stat", [.readOnly]),
            let bytes = try? file.content(atMost: 64 << 10)
        else { return nil }
        // The second field is the program's name in parentheses, and may contain any character. The 22nd field is the
        // start in ticks since the system was started.
        let remaining = String(decoding: bytes, as: UTF8.self).split(separator: ")").last ?? ""
        let fields = remaining.split(separator: " ")
        guard fields.count > 19, let ticks = Double(fields[19]) else { return nil }
        var sinceBoot = timespec()
        guard clock_gettime(CLOCK_BOOTTIME, &sinceBoot) == 0 else { return nil }
        let uptime = Double(sinceBoot.tv_sec) + Double(sinceBoot.tv_nsec) / 1e9
        let age = uptime - ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
        let start = Double(SystemClock.realtimeNanoseconds()) / 1e9 - age
        return (start * 100).rounded() / 100
    }
}

extension ProcessControl {
    /// Blocks signals on this thread and all threads that are started later; ``awaitSignal(of:)`` receives them. Call this
    /// function before any other thread is started.
    /// - Parameter isIgnoredToo: whether to block also signals that the process has ignored since its start, as under
    ///   nohup(1).
    /// - Returns: the blocked signals.
    @discardableResult
    package static func blockSignals(_ signals: [Int32], evenIfIgnored isIgnoredToo: Bool = false) -> [Int32] {
        let blocked = signals.filter { signal in
            var action = sigaction()
            sigaction(signal, nil, &action)
            return isIgnoredToo || !isIgnored(action)
        }
        var set = set(of: blocked)
        pthread_sigmask(SIG_BLOCK, &set, nil)
        return blocked
    }

    /// Waits for one of `signals`, which must be blocked, and returns its number.
    package static func awaitSignal(of signals: [Int32]) -> Int32 {
        var set = set(of: signals)
        var number: Int32 = 0
        while sigwait(&set, &number) != 0 {}
        return number
    }

    /// Makes a write to a pipe without a reader fail instead of ending the process.
    package static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }

    /// Ends the process with SIGPIPE, as a write to a pipe without a reader does by default.
    package static func endByBrokenPipe() -> Never {
        signal(SIGPIPE, SIG_DFL)
        raise(SIGPIPE)
        // If the signal is blocked, end with the status that a shell shows for it.
        _exit(128 + SIGPIPE)
    }

    /// Ends the process now: nothing is flushed, no handler runs.
    package static func endNow(_ status: Int32) -> Never { _exit(status) }

    static func isIgnored(_ action: sigaction) -> Bool {
        // SIG_IGN is 1. Swift cannot compare function values, so the value is compared as an integer.
        unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    private static func set(of signals: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }
}

/// The datagram socket on which a service manager receives the state of a service (sd_notify(3)): a path in the file
/// system, or an abstract name.
package final class NotificationSocket: Sendable {
    private let descriptor: FileDescriptor
    private let name: [UInt8]

    /// - Parameter address: a path that begins with `/`, or `@` followed by the name of an abstract socket.
    /// - Throws: `EINVAL` for any other address, `ENAMETOOLONG` if the address is too long.
    package init(address: String) throws(Errno) {
        var name = Array(address.utf8)
        guard let first = name.first, name.count > 1, first == UInt8(ascii: "/") || first == UInt8(ascii: "@") else {
            throw .invalidArgument
        }
        guard name.count < MemoryLayout.size(ofValue: sockaddr_un().sun_path) else { throw .nameTooLong }
        if first == UInt8(ascii: "@") { name[0] = 0 }
        self.name = name
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        descriptor = FileDescriptor(owning: try retryingOnInterrupt { socket(AF_UNIX, type, 0) })
        // A manager that does not read must not block the service forever.
        var limit = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(descriptor.rawValue, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Sends one message; waits up to 5 s while the manager's queue is full.
    /// - Throws: `Errno` of sendto(2): `ENOENT` or `ECONNREFUSED` if no process listens, `EAGAIN` if the queue is still
    ///   full after 5 s.
    package func send(_ message: String) throws(Errno) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // The length argument determines where an abstract name ends. The socket is not connected, because the manager
        // may be restarted between two messages.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let bytes = Array(message.utf8)
        _ = try retryingOnInterrupt {
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(descriptor.rawValue, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length)
                }
            }
        }
    }
}
