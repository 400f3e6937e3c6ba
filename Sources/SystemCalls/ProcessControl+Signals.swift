import Glibc

extension ProcessControl {
    /// Keeps the signals that ask for an end from ending the process, ignored or not; ``awaitSignal(of:)`` gets them.
    /// To be called before any other thread is started, so that all inherit it.
    package static func holdEndSignals() {
        var set = set(of: endSignals)
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Keeps `signals` from being delivered to any thread that is started later; ``awaitSignal(of:)`` gets them.
    /// - Returns: those of them that whoever started this process has not told it to ignore (nohup(1)).
    package static func hold(_ signals: [Int32]) -> [Int32] {
        let wanted = signals.filter { signal in
            var action = sigaction()
            sigaction(signal, nil, &action)
            return !isIgnored(action)
        }
        var set = set(of: wanted)
        pthread_sigmask(SIG_BLOCK, &set, nil)
        return wanted
    }

    /// Waits for one of `signals`, which are held.
    package static func awaitSignal(of signals: [Int32]) -> Int32 {
        var set = set(of: signals)
        var number: Int32 = 0
        while sigwait(&set, &number) != 0 {}
        return number
    }

    /// A write to a pipe that nobody reads fails instead of ending the process.
    package static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }

    /// Ends the process as a write to a pipe that nobody reads does by itself.
    package static func endByBrokenPipe() -> Never {
        signal(SIGPIPE, SIG_DFL)
        raise(SIGPIPE)
        // It is blocked: with the status that a shell shows for it.
        _exit(128 + SIGPIPE)
    }

    /// Ends the process now: nothing is flushed, no handler runs.
    package static func endNow(_ status: Int32) -> Never { _exit(status) }

    private static func isIgnored(_ action: sigaction) -> Bool {
        // SIG_IGN has no value that could be compared as a function.
        unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    private static func set(of signals: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }
}
