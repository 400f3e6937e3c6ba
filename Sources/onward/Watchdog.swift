import SystemCalls

/// Gives signs of life for as long as there is life: before each one it looks.
final class Watchdog: Sendable {
    private let isOver = Monitor(false)

    /// Starts; the first look is at once, then one each half of the interval (sd_watchdog_enabled(3)).
    /// - Parameters:
    ///   - interval: nanoseconds; without a sign for so long, somebody ends the process.
    ///   - isAlive: looks, until a time of the monotonic clock. As long as it does not return there is no sign either.
    ///   - sign: gives one.
    ///   - alarm: is told once, when a look has failed, before the time for the next sign is over.
    init(
        interval: Int64, isAlive: @escaping @Sendable (Int64) -> Bool, sign: @escaping @Sendable () -> Void,
        alarm: @escaping @Sendable () -> Void
    ) throws(Errno) {
        let period = interval / 2
        _ = try WorkerThread(name: "watchdog") { [isOver] in
            var isAlarmed = false
            var next = SystemClock.monotonicNanoseconds()
            repeat {
                if isAlive(SystemClock.monotonicNanoseconds() + period) {
                    // Whoever has said that it ends says no more.
                    if isOver.withLock({ $0 }) { return }
                    sign()
                    isAlarmed = false
                    next += period
                } else {
                    if isOver.withLock({ $0 }) { return }
                    if !isAlarmed { alarm() }
                    isAlarmed = true
                    next = SystemClock.monotonicNanoseconds() + period / 8
                }
                next = max(next, SystemClock.monotonicNanoseconds() + period / 8)
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
