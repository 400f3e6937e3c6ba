import PostgreSQL
import SystemCalls
import UploadStorage

/// The node of this process: keeps a ``NodeSession`` in the database, exchanges requests for uploads with other nodes, and
/// does the regular work on the database that any node can do. Safe to use from any thread.
package final class ClusterNode: Sendable {
    /// The database for changes and reads.
    package let database: Database
    /// The database for renewals and notifications, with connections of its own. They must not wait for other work, and
    /// notifications do not pass through PgBouncer in transaction mode.
    let control: Database
    private let name: String
    /// Identifies this process in the rows of its sessions.
    private let process = UploadID().text
    /// The number of attempts to open a session.
    private let openings = Monitor<Int64>(0)
    /// The error with which the last attempt failed, if that does not mean that the database cannot be reached.
    private let openingError = Monitor<StoreError?>(nil)
    private let isExclusive: Bool
    /// Whether this node may become the one that delivers events.
    let canDeliverEvents: Bool
    private let times: NodeSession.Times
    let session: Monitor<NodeSession>
    let counts = Monitor(NodeCounts())
    let work = Monitor(Work())
    let waiting = Monitor(Waiting())
    let observers = Monitor(Observers())
    let delivery = Monitor(Delivery())
    let notifications = Monitor(NotificationProbe())
    private let crashSafety = Monitor(CrashSafety())
    let report: @Sendable (ClusterObservation.Note) -> Void
    let listener = Monitor<DatabaseListener?>(nil)
    let outcomeResolution = Monitor(OutcomeResolution())
    private let threads = Monitor<[WorkerThread]>([])
    private let databaseClock = Monitor(DatabaseClock())

    struct Work {
        var releases: [NodeSession.Release] = []
        /// The session that the database has rejected.
        var endedSession: Int64?
        /// Whether the channel was connected again, so that notifications are probed.
        var shouldProbeNotifications = false
        var isClosing = false
    }

    /// The uploads for which threads wait, with the numbers of threads, and those that other nodes have released.
    struct Waiting {
        var threads: [UploadID: Int] = [:]
        var released: Set<UploadID> = []
    }

    struct Delivery {
        /// Whether this node was the one that delivers events at its last check, and its session at that time.
        var isActive = false
        var session: Int64?
        /// The session that has to read the events from the beginning.
        var restart: Int64?
        /// The number of the last event that was seen.
        var last: Int64 = 0
    }

    struct Observers {
        var requested: (@Sendable (UploadID) -> Void)?
        var lost: (@Sendable ([UploadID]) -> Void)?
        var events: (@Sendable () -> Void)?
    }

    /// Brings the schema up to date, and opens a session. If the database cannot be reached, a thread does this later.
    ///
    /// - Parameters:
    ///   - control: the same database, not through PgBouncer, with a timeout below the lifetime of a session.
    ///   - name: a name for operators, such as the name of the host.
    ///   - canDeliverEvents: whether this node may become the one that delivers events.
    ///   - isExclusive: whether the node can only be opened if no other one is, and no other one can be opened before its
    ///     only session has ended.
    ///   - report: is called with lines for the log, and must not block.
    package init(
        database: Database, control: Database, name: String, times: NodeSession.Times = NodeSession.Times(),
        canDeliverEvents: Bool = true, isExclusive: Bool = false,
        report: @escaping @Sendable (ClusterObservation.Note) -> Void = { _ in }
    ) throws(StoreError) {
        self.database = database
        self.control = control
        self.name = name
        self.canDeliverEvents = canDeliverEvents
        self.isExclusive = isExclusive
        self.times = times
        self.report = report
        session = Monitor(NodeSession(times: times))
        do throws(StoreError) { try open() } catch { guard case .unavailable = error else { throw error } }
        do throws(Errno) {
            let started = [
                try WorkerThread(name: "node-session") { [self] in keepSession() },
                try WorkerThread(name: "node-release") { [self] in keepReleasing() },
                try WorkerThread(name: "node-work") { [self] in keepWorking() },
            ]
            threads.withLock { [started] in $0 = started }
        } catch {
            close()
            throw .cannotStartThread(error)
        }
    }

    /// A node with an open session that is never renewed, and no regular work, for tests.
    init(database: Database, session number: Int64) {
        (self.database, control, name, times) = (database, database, "test", NodeSession.Times())
        (canDeliverEvents, isExclusive, report) = (true, false, { _ in })
        var open = NodeSession(times: times)
        open.opened(number, sentAt: .max >> 1)
        session = Monitor(open)
    }

    /// The time for the last transactions of a node: if the database does not respond, its session ends by itself.
    private static let closingTime = Duration.seconds(10)

    /// Ends the session, so that other nodes can acquire its uploads at once.
    package func close() {
        let isFirst = work.withLock { work in
            defer { work.isClosing = true }
            return !work.isClosing
        }
        guard isFirst else { return }
        work.notifyAll()
        let deadline = SystemClock.deadline(in: Self.closingTime)
        for database in [database, control] { database.endTransactions(at: deadline) }
        let running = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in running { thread.join() }
        let last = listener.withLock { listener in
            defer { listener = nil }
            return listener
        }
        last?.close()
        if session.withLock({ $0.number }) != nil { _ = try? resolvedSession() }
        session.withLock { _ = $0.ended() }
        _ = try? control.run(DatabaseStatement(ClusterSQL.closeSessions, [.text(process)]))
    }

    /// Waits until this node is being closed, or until `deadline` (monotonic nanoseconds).
    /// - Returns: whether the node is being closed.
    func waitForClosing(until deadline: Int64) -> Bool {
        work.wait(until: deadline) { $0.isClosing ? true : nil } ?? false
    }

    package func onHolds(
        requested: @escaping @Sendable (UploadID) -> Void, lost: @escaping @Sendable ([UploadID]) -> Void
    ) {
        observers.withLock { ($0.requested, $0.lost) = (requested, lost) }
    }

    func onEvents(_ body: @escaping @Sendable () -> Void) { observers.withLock { $0.events = body } }

    func notifyOfEvents() { observers.withLock { $0.events }?() }

    // MARK: The session

    /// The number of the session.
    package func currentSession() throws(StoreError) -> Int64 {
        guard let number = session.withLock({ $0.number }) else { throw StoreError(Self.noSession) }
        return number
    }

    /// Verifies that the only session of an exclusive node has not ended, so that no other process has changed anything.
    func requireExclusion() throws(StoreError) {
        guard session.withLock({ $0.isAlive(at: Self.now) }) else {
            throw .unavailable("the session of this process has ended, so a server may have changed something")
        }
    }

    static let noSession = DatabaseError.unavailable(
        "this server has no session in the database yet; it tries again every second", isPossiblyCommitted: false)

    static var now: Int64 { SystemClock.bootNanoseconds() }

    private var lifetimeMilliseconds: DatabaseValue { .integer(times.lifetime / 1_000_000) }

    /// The clock of the database, advanced by the clock of this system, so that the clocks of all nodes agree.
    package var clock: ClockReading { databaseClock.withLock { $0.reading(at: SystemClock.reading()) } }

    private func open() throws(StoreError) {
        let isFirst = !databaseClock.withLock { $0.isKnown }
        // A newer version can have changed the schema since the last session.
        try control.updateClusterSchema()
        try translating { () throws(DatabaseError) in
            if isFirst {
                _ = try control.run(DatabaseStatement(ClusterSQL.renumber))
            }
            // A session without the clock of the database would use that of this system.
            try readClock()
            try openSession()
        }
    }

    private func readClock() throws(DatabaseError) {
        let sentAt = Self.now
        noteClock(try control.run(DatabaseStatement(ClusterSQL.readClock)), sentAt: sentAt)
    }

    /// - Parameters:
    ///   - response: the values of ``ClusterSQL/readClock``.
    ///   - sentAt: the time of the request, as of ``now``.
    private func noteClock(_ response: DatabaseRows, sentAt: Int64) {
        guard let microseconds = response.integer(0, 0) else { return }
        let middle = sentAt + (Self.now - sentAt) / 2
        let system = SystemClock.reading()
        if let note = databaseClock.withLock({ $0.observed(microseconds * 1000, at: middle, system: system) }) {
            report(note)
        }
        for note in crashSafety.withLock({ $0.observed(response.text(0, 1)) }) { report(note) }
    }

    private func openSession() throws(DatabaseError) {
        let sentAt = Self.now
        let opening = openings.withLock { openings in
            openings += 1
            return openings
        }
        let kept = session.withLock { $0.fences.map { ($0.key.bytes, $0.value) } }
        let statement = DatabaseStatement(
            ClusterSQL.openSession,
            [
                .text(process), .integer(opening), .text(name), lifetimeMilliseconds, .boolean(canDeliverEvents),
                .boolean(isExclusive), .byteArrays(kept.map(\.0)), .integers(kept.map(\.1)),
            ])
        guard let number = try control.run(statement).integer(0, 0) else { return }
        let adopted =
            kept.isEmpty
            ? []
            : try control.run(
                DatabaseStatement(ClusterSQL.selectFences, [.integer(number), .byteArrays(kept.map(\.0))])
            ).uploads
        let started = try control.listen(Self.channel(number)) { [weak self] in
            self?.probeNotifications()
        } body: { [weak self] payload in
            self?.receive(payload, in: number)
        }
        listener.withLock { $0 = started }
        reportLost(session.withLock { $0.opened(number, sentAt: sentAt, adopting: adopted) })
    }

    /// The channel of the notifications for a session.
    private static func channel(_ session: Int64) -> String { "onward_\(session)" }

    /// The statement that sends a notification to a session.
    static func notification(_ text: String, to session: Int64) -> DatabaseStatement {
        DatabaseStatement(ClusterSQL.notify, [.text(channel(session)), .text(text)])
    }

    /// Ends a session that could not be renewed, or that the database has rejected.
    private func endSession(_ number: Int64) {
        let lost = session.withLock { $0.number == number ? $0.ended() : nil }
        guard let lost else { return }
        counts.withLock { $0.session.lost += 1 }
        reportLost(lost)
        // The thread of the listener may be connecting, and ends later.
        listener.withLock { $0 = nil }
    }

    private func reportLost(_ holds: [UploadID]) {
        counts.withLock { $0.holds.lost += holds.count }
        if !holds.isEmpty { observers.withLock { $0.lost }?(holds) }
    }

    /// Called after the database has rejected a session.
    func sessionWasRejected(_ number: Int64) {
        work.withLock { $0.endedSession = number }
        work.notifyAll()
    }

    private func keepSession() {
        let isOpen = session.withLock { $0.number != nil }
        var next = SystemClock.monotonicNanoseconds() + (isOpen ? times.renewal : times.renewal / 5)
        while true {
            let rejected = work.wait(until: next) { work -> Int64?? in
                if work.isClosing { return .some(nil) }
                guard let number = work.endedSession else { return nil }
                work.endedSession = nil
                return .some(number)
            }
            if case .some(nil) = rejected { return }
            if case .some(let number?) = rejected { endSession(number) }
            next = SystemClock.monotonicNanoseconds() + (renewOrOpen() ? times.renewal : times.renewal / 5)
        }
    }

    /// Opens the next session.
    /// - Returns: false if it has to be repeated soon.
    private func reopen() -> Bool {
        if isExclusive { return true }
        do throws(StoreError) { try open() } catch {
            if case .unavailable = error { return false }
            let isNew = openingError.withLock { last in
                defer { last = error }
                return last != error
            }
            if isNew { report(.init(isProblem: true, text: "the database cannot be used: \(error)")) }
            return false
        }
        openingError.withLock { $0 = nil }
        return true
    }

    /// - Returns: false if it has to be repeated soon.
    private func renewOrOpen() -> Bool {
        guard let number = session.withLock({ $0.number }) else { return reopen() }
        let sentAt = Self.now
        do throws(DatabaseError) {
            let statement = DatabaseStatement(ClusterSQL.renewSession, [.integer(number), lifetimeMilliseconds])
            let response = try control.run(statement)
            if response.affected == 1 {
                noteClock(response, sentAt: sentAt)
                session.withLock { $0.renewed(sentAt: sentAt) }
                counts.withLock { $0.session.renewals += 1 }
                return true
            }
            endSession(number)
            return reopen()
        } catch {
            counts.withLock { $0.session.failedRenewals += 1 }
            if !session.withLock({ $0.isAlive(at: Self.now) }) { endSession(number) }
            return false
        }
    }
}

extension DatabaseError {
    /// The SQLSTATE; nil if the database could not be reached.
    var sqlState: String? { if case .failed(let sqlState, _) = self { sqlState } else { nil } }

    /// Whether the transaction may have been committed.
    var isPossiblyCommitted: Bool { if case .unavailable(_, true) = self { true } else { false } }
}

extension StoreError {
    init(_ error: DatabaseError) {
        switch error {
        case .unavailable(let reason, _): self = .unavailable("the database is unavailable: \(reason)")
        case .failed(let sqlState, let message):
            switch sqlState {
            case ClusterSQL.CatalogError.sessionEnded, ClusterSQL.CatalogError.batchEnded: self = .unavailable(message)
            case ClusterSQL.FilesError.sessionEnded, ClusterSQL.FilesError.gap, ClusterSQL.FilesError.garbage:
                self = .superseded
            case ClusterSQL.CatalogError.inUse: self = .inUse
            case ClusterSQL.FilesError.occupied: self = .preconditionFailed
            case ClusterSQL.FilesError.isDirectory: self = .targetIsDirectory
            case ClusterSQL.FilesError.parentIsFile: self = .parentIsFile
            case ClusterSQL.FilesError.directoryMissing: self = .notFound
            case ClusterSQL.FilesError.bytesMissing: self = .stateLost
            // disk_full
            case "53100": self = .insufficientSpace(nil)
            // data_corrupted, index_corrupted
            case "XX001", "XX002": self = .damaged(message)
            default:
                // insufficient_resources, operator_intervention, and errors of the connection and of access
                let isTemporary = ["53", "57", "08", "28", "3D", "42501"].contains { sqlState.hasPrefix($0) }
                self =
                    isTemporary
                    ? .unavailable("the database has refused the request: \(message)")
                    : .invalidState(error.description)
            }
        }
    }
}
