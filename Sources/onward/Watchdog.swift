import SystemCalls

/// Sends keep-alive messages as long as a check succeeds before each one.
final class Watchdog: Sendable {
    private let isStopped = Monitor(false)

    /// Starts the watchdog. The first check is made immediately, and each further check after half of the interval
    /// (sd_watchdog_enabled(3)), or after a sixteenth of the interval if the last check failed.
    /// - Parameters:
    ///   - interval: nanoseconds. If no keep-alive message arrives for that time, the service manager ends the process.
    ///   - check: performs the check until a deadline of the monotonic clock; `nil` means that it failed. While it does
    ///     not return, nothing is sent.
    ///   - send: sends a keep-alive message with the result of the check.
    ///   - alarm: is called when a check fails; not again before a check has succeeded.
    init<Finding>(
        interval: Int64, check: @escaping @Sendable (Int64) -> Finding?, send: @escaping @Sendable (Finding) -> Void,
        alarm: @escaping @Sendable () -> Void
    ) throws(Errno) {
        let period = interval / 2
        _ = try WorkerThread(name: "watchdog") { [isStopped] in
            var isAlarmed = false
            var next = SystemClock.monotonicNanoseconds()
            repeat {
                let finding = check(SystemClock.monotonicNanoseconds() + period)
                let shouldContinue = isStopped.withLock { isStopped in
                    // After ``stop()`` nothing more is sent.
                    if isStopped { return false }
                    if let finding { send(finding) } else if !isAlarmed { alarm() }
                    return true
                }
                guard shouldContinue else { return }
                isAlarmed = finding == nil
                let now = SystemClock.monotonicNanoseconds()
                next = finding == nil ? now + period / 8 : max(next + period, now + period / 2)
            } while isStopped.wait(until: next, { $0 ? true : nil }) == nil
        }
    }

    /// Stops the watchdog without waiting for a check in progress.
    func stop() {
        isStopped.withLock { $0 = true }
        isStopped.notifyAll()
    }

    deinit { stop() }
}
