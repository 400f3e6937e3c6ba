import Glibc

extension ProcessControl {
    /// Blocks the signals that request an end, even if they are ignored; ``awaitSignal(of:)`` receives them. Call it
    /// before any other thread is started, so that all threads inherit it.
    package static func blockEndSignals() {
        var set = set(of: endSignals)
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Blocks `signals` on this thread and all threads that are started later; ``awaitSignal(of:)`` receives them.
    /// - Returns: those that the process does not ignore since its start, as under nohup(1).
    package static func blockSignals(_ signals: [Int32]) -> [Int32] {
        let wanted = signals.filter { signal in
            var action = sigaction()
            sigaction(signal, nil, &action)
            return !isIgnored(action)
        }
        var set = set(of: wanted)
        pthread_sigmask(SIG_BLOCK, &set, nil)
        return wanted
    }

    /// Waits for one of `signals`, which are blocked.
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

    private static func isIgnored(_ action: sigaction) -> Bool {
        // SIG_IGN is 1, which cannot be compared as a Swift function.
        unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
    }

    private static func set(of signals: [Int32]) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        return set
    }
}
