import Glibc

/// Operations on the entire process.
package enum ProcessControl {
    /// Raises the limit of open descriptors to the hard limit.
    package static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Opens /dev/null for those of the descriptors 0, 1 and 2 that are closed. Otherwise a file or socket could get
    /// such a number, and receive output that is meant for people. Reading 0 and writing 1 and 2 still fail with
    /// `EBADF`.
    package static func occupyStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // open(2) returns the lowest free number, which is this one.
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

    /// The signals that request the end of a process.
    package static let endSignals = [SIGTERM, SIGINT]
    /// The signal that requests a server to read its files again.
    package static let reloadSignal = SIGHUP
}
