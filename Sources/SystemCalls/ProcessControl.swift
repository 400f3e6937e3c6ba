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

    /// Keeps the signals that ask for an end from ending the process; `waitForEnd()` gets them. To be called before any
    /// other thread is started, so that all inherit it.
    public static func holdEndSignals() {
        var set = endSignals()
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Waits until somebody asks the process to end, by SIGTERM or SIGINT.
    public static func waitForEnd() {
        var set = endSignals()
        var number: Int32 = 0
        while sigwait(&set, &number) != 0 {}
    }

    private static func endSignals() -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGTERM)
        sigaddset(&set, SIGINT)
        return set
    }
}
