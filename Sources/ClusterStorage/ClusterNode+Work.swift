import PostgreSQL
import SystemCalls
import UploadStorage

// The regular work on the database that any node can do, and the probe of notifications.
extension ClusterNode {
    /// The pauses between two runs of the regular work, and between two removals of ended sessions, in nanoseconds.
    private static let pause: Int64 = 500_000_000
    private static let removalPause: Int64 = 5_000_000_000
    /// The pause between two probes of the notifications, if the last one has arrived.
    private static let probePause: Int64 = 5_000_000_000

    func keepWorking() {
        var next = SystemClock.monotonicNanoseconds() + Self.pause
        var (nextRemoval, nextProbe) = (next, next)
        while true {
            let mustProbe = work.wait(until: next) { work -> Bool? in
                guard work.isClosing || work.shouldProbeNotifications else { return nil }
                defer { work.shouldProbeNotifications = false }
                return true
            }
            if work.withLock({ $0.isClosing }) { return }
            let now = SystemClock.monotonicNanoseconds()
            if mustProbe != nil || now >= nextProbe || !notifications.withLock({ $0.hasArrived }) {
                nextProbe = now + Self.probePause
                sendProbe()
            }
            if now < next { continue }
            next = now + Self.pause
            // If the database is unavailable, the work is repeated later. This call also resolves batches with an
            // unknown outcome: such a batch must not have an effect long after its caller has got an error.
            _ = try? resolvedSession()
            // Other work waits at most as long as the pause between two runs.
            addUsageChanges(until: next)
            if now >= nextRemoval {
                nextRemoval = now + Self.removalPause
                _ = try? control.run(DatabaseStatement(ClusterSQL.endLateTransactions))
                _ = try? database.run(DatabaseStatement(ClusterSQL.removeEndedSessions))
            }
            observeEvents()
        }
    }

    /// Adds the waiting changes of the usage to its totals, if this node is the one that delivers events.
    /// - Parameter deadline: monotonic nanoseconds. No addition begins later, except the first one.
    func addUsageChanges(until deadline: Int64) {
        while let number = session.withLock({ $0.number }),
            let rows = try? database.run(DatabaseStatement(ClusterSQL.addUsageChanges, [.integer(number)])),
            // If there is no row, another node adds the changes.
            rows.count > 0, let added = rows.integer(0, 0), added > 0, SystemClock.monotonicNanoseconds() < deadline,
            !work.withLock({ $0.isClosing })
        {}
    }

    /// Calls the observer of events if other nodes have recorded events, or if this node begins to deliver events.
    private func observeEvents() {
        guard let body = observers.withLock({ $0.events }), let number = session.withLock({ $0.number }) else { return }
        // A node that begins to deliver events is notified of all of them.
        let seen = delivery.withLock { $0.isActive && $0.session == number ? $0.last : 0 }
        guard
            let rows = try? database.run(
                DatabaseStatement(ClusterSQL.selectLastEvent, [.integer(number), .integer(seen)])),
            let delivers = rows.boolean(0, 0)
        else { return }
        let last = rows.integer(0, 1) ?? 0
        let hasNew = delivery.withLock { delivery in
            if delivers && (!delivery.isActive || delivery.session != number) {
                (delivery.restart, delivery.last) = (number, 0)
            }
            (delivery.isActive, delivery.session) = (delivers, number)
            defer { delivery.last = max(last, delivery.last) }
            return delivers && last > delivery.last
        }
        if hasNew { body() }
    }

    /// Whether this node was the one that delivers events when it last checked.
    var isDelivering: Bool { delivery.withLock { $0.isActive } }

    /// Reads the next events that this node delivers. After it has begun to deliver events in a session, the first events
    /// are read again: another node may have ended before it delivered events that this node had read earlier.
    func deliverableEvents(after number: Int64, limit: Int64) throws(StoreError) -> DatabaseRows {
        let session = try currentSession()
        let restarts = delivery.withLock { $0.restart == session }
        let rows = try read(
            ClusterSQL.selectEvents, [.integer(session), .integer(restarts ? 0 : number), .integer(limit)])
        if restarts && rows.count > 0 { delivery.withLock { if $0.restart == session { $0.restart = nil } } }
        return rows
    }

    // MARK: Notifications

    /// Whether notifications of the database arrive, without which no other node releases an upload for this node in time.
    var isReceivingNotifications: Bool { notifications.withLock { $0.isArriving } }

    /// Lets the thread of the regular work probe the notifications soon.
    func probeNotifications() {
        work.withLock { $0.shouldProbeNotifications = true }
        work.notifyAll()
    }

    /// Sends a notification to this node, over a connection for changes.
    private func sendProbe() {
        guard let number = session.withLock({ $0.number }) else { return }
        let probe = notifications.withLock { $0.next }
        let statements = [
            DatabaseStatement(ClusterSQL.commitAtOnce),
            Self.notification("probe \(probe)", to: number),
        ]
        guard (try? database.transaction(statements)) != nil else { return }
        let (note, shouldReconnect) = notifications.withLock { ($0.sent(probe), $0.shouldReconnect) }
        if let note { report(note) }
        // A proxy before the database may have dropped the connection without an end.
        if shouldReconnect { listener.withLock { $0 }?.reconnect() }
    }

    func receive(probe: Int) { if let note = notifications.withLock({ $0.received(probe) }) { report(note) } }
}

/// Whether the notifications that a node sends to itself arrive. They do not if the node listens through a connection
/// pooler: PgBouncer in transaction mode accepts `LISTEN`, and passes no notification on. A value type with one method for
/// each event.
struct NotificationProbe {
    /// The number of probes in a row that have not arrived after which notifications count as missing.
    static let limit = 10

    private var lastSent = 0
    private var lastReceived = 0
    private var isReported = false

    /// The number of the next probe.
    var next: Int { lastSent + 1 }

    /// Whether the last probe has arrived.
    var hasArrived: Bool { lastReceived >= lastSent && lastReceived > 0 }

    /// Whether notifications arrive; false before the first one.
    var isArriving: Bool { lastReceived > 0 && lastSent - lastReceived < Self.limit }

    /// Whether the connection has to be made again: after each ten probes that have not arrived.
    var shouldReconnect: Bool { lastSent > lastReceived && (lastSent - lastReceived).isMultiple(of: Self.limit) }

    /// Records that the database has committed a probe.
    /// - Returns: the line for the log if notifications are missing.
    mutating func sent(_ probe: Int) -> ClusterObservation.Note? {
        lastSent = max(lastSent, probe)
        guard lastSent - lastReceived >= Self.limit, !isReported else { return nil }
        isReported = true
        return ClusterObservation.Note(
            isProblem: true,
            text: "notifications of the database do not arrive, so other servers do not release uploads for this one; "
                + "if --catalog is the URI of a pooler such as PgBouncer, set --catalog-direct to that of the database")
    }

    mutating func received(_ probe: Int) -> ClusterObservation.Note? {
        lastReceived = max(lastReceived, probe)
        defer { isReported = false }
        return isReported
            ? ClusterObservation.Note(isProblem: false, text: "notifications of the database arrive again") : nil
    }
}
