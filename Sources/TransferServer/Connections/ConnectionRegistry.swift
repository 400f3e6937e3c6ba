import SystemCalls

/// The open connections of a server, and the reaper that ends those whose client keeps them waiting.
///
/// libmicrohttpd's own timeout is not used: it counts inactivity alone, and spins in the last second before it.
final class ConnectionRegistry: Sendable {
    private struct Entries {
        var open: [ObjectIdentifier: ConnectionEntry] = [:]
        /// Those of `open` that were not closed to make room.
        var table = ConnectionTable<ObjectIdentifier>()
        var isDraining = false
        var isStopped = false
        /// Nobody waits for answers any more.
        var shouldDrainNow = false
    }

    private let timeouts: ConnectionTimeouts
    private let entries = Monitor(Entries())

    private let capacity: Int

    /// - Parameter capacity: connections at a time.
    init(timeouts: ConnectionTimeouts, capacity: Int) {
        self.timeouts = timeouts
        self.capacity = capacity
    }

    /// How many connections may be closed whose threads have not ended yet. At this number new connections are refused: the
    /// threads are stuck, and must not become more and more.
    static func maximumClosing(capacity: Int) -> Int { max(64, capacity) }

    /// What happens to a connection that arrives.
    enum Admission {
        case served
        /// The limit was reached: so many open connections were closed for the new one, which is served unless it is refused.
        case limited(closed: Int, isRefused: Bool, largest: (client: ConnectionClient, count: Int)?)
    }

    /// Decides whether a connection of `client` is served, and closes another one for it if there are too many.
    func admit(_ client: @autoclosure () -> ConnectionClient) -> Admission {
        var closed: [ConnectionEntry] = []
        let admission = entries.withLock { entries -> Admission in
            guard entries.table.count >= capacity else { return .served }
            let largest = entries.table.largestClient
            var isRefused = entries.open.count - entries.table.count >= Self.maximumClosing(capacity: capacity)
            let (client, now) = (client(), SystemClock.monotonicNanoseconds())
            // Listeners that admit connections at the same time may have admitted one too many.
            while !isRefused && entries.table.count >= capacity {
                switch entries.table.makeRoom(
                    for: client, at: now, measure: { entries.open[$0]?.transferredBytes() ?? 0 })
                {
                case .refuse: isRefused = true
                case .close(let id): entries.open[id].map { closed.append($0) }
                }
            }
            return .limited(closed: closed.count, isRefused: isRefused, largest: largest)
        }
        for entry in closed { entry.close(reason: .tooMany) }
        return admission
    }

    /// Adds a connection that was admitted.
    func add(_ entry: ConnectionEntry) {
        entries.withLock {
            $0.open[ObjectIdentifier(entry)] = entry
            $0.table.insert(ObjectIdentifier(entry), of: entry.peerClient, at: SystemClock.monotonicNanoseconds())
        }
    }

    /// Counts a connection for another client: that of the request that it serves.
    func count(_ entry: ConnectionEntry, for client: ConnectionClient) {
        let bytes = entry.transferredBytes()
        entries.withLock {
            $0.table.move(
                ObjectIdentifier(entry), to: client, at: SystemClock.monotonicNanoseconds(), bytes: bytes)
        }
    }

    func remove(_ entry: ConnectionEntry) {
        entry.close()
        entries.withLock {
            $0.open[ObjectIdentifier(entry)] = nil
            $0.table.remove(ObjectIdentifier(entry))
        }
        entries.notifyAll()
    }

    /// Ends all connections but those that the server itself works for or answers; then waits for these until the
    /// deadline (monotonic nanoseconds) and ends them, too.
    func drain(until deadline: Int64) {
        entries.withLock { $0.isDraining = true }
        repeat {
            for entry in snapshot() { entry.closeUnlessAnswering() }
        } while !isEmpty(by: min(deadline, SystemClock.monotonicNanoseconds() + 50_000_000))
            && SystemClock.monotonicNanoseconds() < deadline && !entries.withLock { $0.shouldDrainNow }
        for entry in snapshot() { entry.close(reason: .stopping) }
    }

    /// Makes ``drain(until:)`` end at once.
    func drainNow() { entries.withLock { $0.shouldDrainNow = true } }

    /// Connections that are open.
    var count: Int { entries.withLock { $0.open.count } }

    /// Whether the server drains: connections that become idle are not kept.
    var isDraining: Bool { entries.withLock { $0.isDraining } }

    /// Runs until `stop()`; looks at every connection four times a second.
    func reap() {
        while waitUnlessStopped(nanoseconds: 250_000_000) {
            let now = SystemClock.monotonicNanoseconds()
            for entry in snapshot() { entry.close(ifOverdue: timeouts, now: now) }
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
