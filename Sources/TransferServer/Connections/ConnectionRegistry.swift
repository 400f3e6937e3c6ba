import SystemCalls

/// The open connections of a server, and the reaper that ends those whose client keeps them waiting.
///
/// libmicrohttpd's own timeout is not used: it counts inactivity alone, and spins in the last second before it.
final class ConnectionRegistry: Sendable {
    private struct Entries {
        var open: [ObjectIdentifier: ConnectionEntry] = [:]
        var isDraining = false
        var isStopped = false
        /// Nobody waits for answers any more.
        var isHurried = false
    }

    private let timeouts: ConnectionTimeouts
    private let entries = Monitor(Entries())

    private let capacity: Int

    /// - Parameter capacity: connections at a time.
    init(timeouts: ConnectionTimeouts, capacity: Int) {
        self.timeouts = timeouts
        self.capacity = capacity
    }

    /// - Returns: `false` where there are too many: the connection is known all the same, and has to be ended.
    func add(_ entry: ConnectionEntry) -> Bool {
        entries.withLock {
            $0.open[ObjectIdentifier(entry)] = entry
            return $0.open.count <= capacity
        }
    }

    func remove(_ entry: ConnectionEntry) {
        entry.close()
        entries.withLock { $0.open[ObjectIdentifier(entry)] = nil }
        entries.notifyAll()
    }

    /// Ends all connections but those that the server itself works for or answers; then waits for these until the
    /// deadline (monotonic nanoseconds) and ends them, too.
    func drain(until deadline: Int64) {
        entries.withLock { $0.isDraining = true }
        repeat {
            for entry in snapshot() { entry.abandonUnlessAnswering() }
        } while !isEmpty(by: min(deadline, SystemClock.monotonicNanoseconds() + 50_000_000))
            && SystemClock.monotonicNanoseconds() < deadline && !entries.withLock { $0.isHurried }
        for entry in snapshot() { entry.abandon(.stopping) }
    }

    /// Makes ``drain(until:)`` end at once.
    func hurry() { entries.withLock { $0.isHurried = true } }

    /// Connections that are open.
    var count: Int { entries.withLock { $0.open.count } }

    /// Whether the server drains: connections that become idle are not kept.
    var isDraining: Bool { entries.withLock { $0.isDraining } }

    /// Runs until `stop()`; looks at every connection four times a second.
    func reap() {
        while waitUnlessStopped(nanoseconds: 250_000_000) {
            let now = SystemClock.monotonicNanoseconds()
            for entry in snapshot() { entry.abandon(ifOverdue: timeouts, now: now) }
        }
    }

    /// - Returns: `false` once the server has stopped, without waiting any longer.
    func waitUnlessStopped(nanoseconds: Int64) -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + nanoseconds
        return entries.wait(until: deadline) { $0.isStopped ? true : nil } == nil
    }

    /// Lets the threads that a failed start has stopped run again.
    func resume() { entries.withLock { $0.isStopped = false } }

    func stop() {
        entries.withLock { $0.isStopped = true }
        entries.notifyAll()
    }

    private func snapshot() -> [ConnectionEntry] { entries.withLock { Array($0.open.values) } }

    private func isEmpty(by deadline: Int64) -> Bool {
        entries.wait(until: deadline) { $0.open.isEmpty ? true : nil } ?? false
    }
}
