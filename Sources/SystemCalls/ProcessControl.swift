import Glibc

/// What concerns the whole process.
public enum ProcessControl {
    /// Allows as many open descriptors as the system lets this process have.
    public static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// The number of this process.
    public static var identifier: Int32 { getpid() }

    /// Takes variables out of the environment, so that no process that is started inherits them. To be called before any
    /// other thread is started (unsetenv(3)).
    public static func removeVariables(_ names: [String]) { for name in names { unsetenv(name) } }

    /// The user whose rights count.
    public static var effectiveUser: UInt32 { geteuid() }

    /// The signals that ask a process to end.
    public static let endSignals = [SIGTERM, SIGINT]
    /// The signal that asks a server to read its files again.
    public static let reloadSignal = SIGHUP
}
