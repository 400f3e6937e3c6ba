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

    /// The user whose rights count.
    public static var effectiveUser: UInt32 { geteuid() }

    /// The signals that ask a process to end.
    public static let endSignals = [SIGTERM, SIGINT]
    /// The signal that asks a server to read its files again.
    public static let reloadSignal = SIGHUP
}
