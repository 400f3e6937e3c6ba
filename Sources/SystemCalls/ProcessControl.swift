import Glibc

/// What concerns the whole process.
package enum ProcessControl {
    /// Allows as many open descriptors as the system lets this process have.
    package static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Occupies those of the descriptors 0, 1 and 2 that are closed, so that no file or socket gets their number and
    /// receives what is written for people. Reading 0 and writing 1 and 2 then fail with `EBADF`, as before.
    package static func occupyStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            // The lowest number that is free: this one.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// The number of this process.
    package static var identifier: Int32 { getpid() }

    /// Takes variables out of the environment, so that no process that is started inherits them. To be called before any
    /// other thread is started (unsetenv(3)).
    package static func removeVariables(_ names: [String]) { for name in names { unsetenv(name) } }

    /// The user whose rights count.
    package static var effectiveUser: UInt32 { geteuid() }

    /// The signals that ask a process to end.
    package static let endSignals = [SIGTERM, SIGINT]
    /// The signal that asks a server to read its files again.
    package static let reloadSignal = SIGHUP
}
