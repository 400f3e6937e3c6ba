import SystemCalls

/// The open connections of a server. The registry closes connections that exceed their timeouts.
///
/// The timeout of libmicrohttpd is not used: it only measures inactivity, and polls without a pause in its last second.
final class ConnectionRegistry: Sendable {
    private struct Entries {
        var open: [ObjectIdentifier: ConnectionEntry] = [:]
        /// The connections of `open` that were not closed to make room for others.
        var table = ConnectionTable<ObjectIdentifier>()
        var isDraining = false
        var isStopped = false
        /// Whether `drain` must end now, without waiting for responses.
        var shouldDrainNow = false
    }

    private let timeouts: ConnectionTimeouts
    private let entries = Monitor(Entries())

    private let capacity: Int

    /// - Parameter capacity: the maximum number of open connections.
    init(timeouts: ConnectionTimeouts, capacity: Int) {
        self.timeouts = timeouts
        self.capacity = capacity
    }

    /// The maximum number of closed connections whose threads have not ended yet. At this number new connections are
    /// rejected, because the threads are stuck and must not accumulate.
    static func maximumClosing(capacity: Int) -> Int { max(64, capacity) }

    /// The result of ``admit(_:)``.
    enum Admission {
        case served
        /// The limit was reached. `closed` connections were closed for the new one, which is served unless `isRefused`.
        case limited(closed: Int, isRefused: Bool, largest: (client: ConnectionClient, count: Int)?)
    }

    /// Decides whether a new connection of `client` is served. If there are too many connections, it closes another
    /// one.
    func admit(_ client: @autoclosure () -> ConnectionClient) -> Admission {
        var closed: [ConnectionEntry] = []
        let admission = entries.withLock { entries -> Admission in
            guard entries.table.count >= capacity else { return .served }
            let largest = entries.table.largestClient
            var isRefused = entries.open.count - entries.table.count >= Self.maximumClosing(capacity: capacity)
            let (client, now) = (client(), SystemClock.monotonicNanoseconds())
            // Several listeners may have admitted connections at the same time.
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

    /// Counts a connection for the client of its current request.
    func count(_ entry: ConnectionEntry, for client: ConnectionClient) {
        let bytes = entry.transferredBytes()
        entries.withLock {
            $0.table.move(
                ObjectIdentifier(entry), to: client, at: SystemClock.monotonicNanoseconds(), bytes: bytes)
        }
    }

    func remove(_ entry: ConnectionEntry) {
        entry.descriptorWillClose()
        entries.withLock {
            $0.open[ObjectIdentifier(entry)] = nil
            $0.table.remove(ObjectIdentifier(entry))
        }
        entries.notifyAll()
    }

    /// Closes all connections except those whose response is being produced or sent. Waits for these until the deadline
    /// (monotonic nanoseconds), and then closes them, too.
    func drain(until deadline: Int64) {
        entries.withLock { $0.isDraining = true }
        repeat {
            for entry in snapshot() { entry.closeUnlessAnswering() }
        } while !isEmpty(by: min(deadline, SystemClock.monotonicNanoseconds() + 50_000_000))
            && SystemClock.monotonicNanoseconds() < deadline && !entries.withLock { $0.shouldDrainNow }
        for entry in snapshot() { entry.close(reason: .stopping) }
    }

    /// Makes ``drain(until:)`` close all connections now.
    func drainNow() { entries.withLock { $0.shouldDrainNow = true } }

    /// The number of open connections.
    var count: Int { entries.withLock { $0.open.count } }

    /// Whether the server is draining, so that idle connections are closed.
    var isDraining: Bool { entries.withLock { $0.isDraining } }

    /// Checks the timeouts of all connections four times a second, until `stop()`.
    func reap() {
        while waitUnlessStopped(nanoseconds: 250_000_000) {
            let now = SystemClock.monotonicNanoseconds()
            for entry in snapshot() { entry.close(ifOverdue: timeouts, now: now) }
        }
    }

    /// Waits for this time, or until the server stops.
    /// - Returns: `false` if the server stops.
    func waitUnlessStopped(nanoseconds: Int64) -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + nanoseconds
        return entries.wait(until: deadline) { $0.isStopped ? true : nil } == nil
    }

    /// Resets the state after a failed start.
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
