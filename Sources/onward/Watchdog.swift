import SystemCalls

/// Gives signs of life for as long as there is life: before each one it looks.
final class Watchdog: Sendable {
    private let isOver = Monitor(false)

    /// Starts; the first look is at once, then one each half of the interval (sd_watchdog_enabled(3)).
    /// - Parameters:
    ///   - interval: nanoseconds; without a sign for so long, somebody ends the process.
    ///   - look: finds out, until a time of the monotonic clock, how life is; nil: there is none. As long as it does not
    ///     return there is no sign either.
    ///   - sign: gives one, of what was found.
    ///   - alarm: is told once, when a look has failed, before the time for the next sign is over.
    init<Finding>(
        interval: Int64, look: @escaping @Sendable (Int64) -> Finding?, sign: @escaping @Sendable (Finding) -> Void,
        alarm: @escaping @Sendable () -> Void
    ) throws(Errno) {
        let period = interval / 2
        _ = try WorkerThread(name: "watchdog") { [isOver] in
            var isAlarmed = false
            var next = SystemClock.monotonicNanoseconds()
            repeat {
                let finding = look(SystemClock.monotonicNanoseconds() + period)
                let shouldContinue = isOver.withLock { isOver in
                    // Whoever has said that it ends says no more.
                    if isOver { return false }
                    if let finding { sign(finding) } else if !isAlarmed { alarm() }
                    return true
                }
                guard shouldContinue else { return }
                isAlarmed = finding == nil
                let now = SystemClock.monotonicNanoseconds()
                next = finding == nil ? now + period / 8 : max(next + period, now + period / 2)
            } while isOver.wait(until: next, { $0 ? true : nil }) == nil
        }
    }

    /// Ends it, without waiting for a look that is under way.
    func stop() {
        isOver.withLock { $0 = true }
        isOver.notifyAll()
    }

    deinit { stop() }
}
