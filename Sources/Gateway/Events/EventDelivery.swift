import HTTPSemantics
import SystemCalls
import TransferServer
import UploadStorage

/// Delivers the events of a store to one destination.
///
/// The store records an event in the same transaction as the change that it reports
/// (`StoreConfiguration.shouldRecordEvents`). Each event is delivered at least once, and the events of one upload in their
/// order. If the delivery of an event fails, it is repeated with increasing pauses. After ``EventSettings/retryTime`` the
/// event is set aside, and after ``EventSettings/keepTime`` it is dropped. Uploads never wait for a delivery, and no event
/// waits for the failures of other uploads' events.
public final class EventDelivery: Sendable {
    private struct State {
        var schedule: DeliverySchedule
        var position = OutboxPosition()
        /// The numbers of the events that were delivered and are still in the outbox.
        var delivered: [Int64] = []
        /// The time at which the first of them was delivered, in monotonic nanoseconds.
        var deliveredSince: Int64 = 0
        /// Whether a failure was logged since the last delivery.
        var hasLoggedFailure = false
        /// The earliest time of the next line of the log about a failure, in monotonic nanoseconds.
        var nextReport: Int64 = 0
        var secrets: [EventSecret]
        var isClosing = false
        var threads: [WorkerThread] = []
    }

    /// Delivered events are removed together. After a crash within this time, in nanoseconds, they are delivered again.
    private static let removalPause: Int64 = 1_000_000_000
    private static let removalBatch = 512
    /// The pause in nanoseconds between checks of the outbox for events that are too old or too many, or that an operator
    /// has retried.
    private static let checkPause: Int64 = 2_000_000_000
    /// The pause in nanoseconds between two lines of the log about failures.
    private static let reportPause: Int64 = 60_000_000_000

    private let settings: EventSettings
    private let store: UploadStore
    private let receiver: any EventReceiver
    private let rules: DeliverySchedule.Rules
    private let note: @Sendable (LogLevel, String) -> Void
    private let state: Monitor<State>
    /// The time of the creation of this object, in monotonic nanoseconds.
    private let createdAt = SystemClock.monotonicNanoseconds()
    /// The same time in milliseconds since 1970, by the clock of the store.
    private let wallAtCreation: Int64

    /// - Parameters:
    ///   - settings: the destination and the limits.
    ///   - store: a store whose configuration has `shouldRecordEvents`. It has to be open until ``close()`` returns.
    ///   - note: called with lines for the log of the program.
    public init(
        _ settings: EventSettings, from store: UploadStore,
        note: @escaping @Sendable (LogLevel, String) -> Void = { _, _ in }
    ) {
        self.settings = settings
        self.store = store
        self.note = note
        wallAtCreation = store.configuration.clock().wall / 1_000_000
        receiver = settings.destination.receiver(timeout: settings.timeout)
        var rules = DeliverySchedule.Rules()
        rules.retryTime = settings.retryTime.nanoseconds
        self.rules = rules
        state = Monitor(State(schedule: DeliverySchedule(rules), secrets: settings.secrets))
    }

    /// Begins to deliver events. The object exists until ``close()`` is called.
    /// - Throws: `Errno` if the system cannot start a thread.
    package func startBlocking() throws(Errno) {
        store.onEvents { [state] in
            state.withLock { $0.position.canHaveNew = true }
            state.notifyAll()
        }
        do throws(Errno) {
            try startThread("events") { [self] in maintain() }
            for _ in 0..<rules.concurrency { try startThread("event") { [self] in deliver() } }
        } catch {
            close()
            throw error
        }
    }

    private func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
        let thread = try WorkerThread(name: name, body)
        state.withLock { $0.threads.append(thread) }
    }

    /// Begins to deliver events. The object exists until ``close()`` is called.
    /// - Throws: `Server.StartError` if the system cannot start a thread.
    public func start() throws(Server.StartError) {
        do throws(Errno) { try startBlocking() } catch { throw .cannotStartThread("events", error) }
    }

    /// Signs later requests with these secrets.
    public func replaceSecrets(with secrets: [EventSecret]) { state.withLock { $0.secrets = secrets } }

    /// Ends running attempts and all threads. Events that were not delivered stay in the store.
    public func close() {
        let threads = state.withLock { state in
            state.isClosing = true
            defer { state.threads = [] }
            return state.threads
        }
        state.notifyAll()
        for thread in threads { thread.join() }
        store.onEvents {}
        removeDelivered(now: .max)
    }

    private var isClosing: Bool { state.withLock { $0.isClosing } }

    // MARK: The outbox

    /// Loads events, removes those that were delivered, and applies the limits, until the delivery is closed.
    private func maintain() {
        var nextCheck: Int64 = 0
        var hasFailed = false
        while !isClosing {
            let now = SystemClock.monotonicNanoseconds()
            do throws(StoreError) {
                try load()
                removeDelivered(now: now)
                if now >= nextCheck {
                    nextCheck = now + Self.checkPause
                    try check()
                }
                hasFailed = false
            } catch {
                if error == .superseded { return }
                if !hasFailed { note(.error, "the outbox of events cannot be read: \(error)") }
                hasFailed = true
                nextCheck = now + Self.reportPause
            }
            let deadline = min(nextCheck, SystemClock.monotonicNanoseconds() + Self.removalPause)
            _ = state.wait(until: deadline) { [hasFailed] state -> Void? in
                let now = SystemClock.monotonicNanoseconds()
                let canLoad = !hasFailed && state.position.hasPage(for: state.schedule, now: now)
                return state.isClosing || canLoad || state.delivered.count >= Self.removalBatch ? () : nil
            }
        }
    }

    /// Loads the next page of events.
    private func load() throws(StoreError) {
        let page = state.withLock { state in
            state.position.nextPage(for: &state.schedule, now: SystemClock.monotonicNanoseconds())
        }
        guard let page else { return }
        let entries: [OutboxEntry]
        do throws(StoreError) { entries = try store.events(after: page.after, limit: rules.page) } catch {
            if !page.isReadInPass { state.withLock { $0.position.canHaveNew = true } }
            throw error
        }
        add(entries, of: page)
    }

    /// - Parameter page: the page with the events; `nil` if an operator retries them.
    private func add(_ entries: [OutboxEntry], of page: OutboxPosition.Page? = nil) {
        let now = SystemClock.monotonicNanoseconds()
        let wall = wallMilliseconds
        // The time during which this process did not run does not count.
        let age = { [createdAt] (entry: OutboxEntry) in
            min((wall - entry.event.time) * 1_000_000, now - createdAt)
        }
        state.withLock { state in
            // The outbox contains delivered events until they are removed.
            let delivered = Set(state.delivered)
            if let page {
                state.position.add(entries, of: page, except: delivered, to: &state.schedule, now: now, age: age)
            } else {
                for entry in entries where !delivered.contains(entry.number) {
                    state.schedule.add(entry, age: age(entry), now: now)
                }
            }
        }
        if !entries.isEmpty { state.notifyAll() }
    }

    /// The time in milliseconds since 1970 by the clock of the store, as in the events. If this clock is set forward
    /// while this object exists, the change is not included: it must not make events old.
    private var wallMilliseconds: Int64 {
        let elapsed = (SystemClock.monotonicNanoseconds() - createdAt) / 1_000_000
        return min(store.configuration.clock().wall / 1_000_000, wallAtCreation + elapsed)
    }

    private func removeDelivered(now: Int64) {
        let delivered = state.withLock { state -> [Int64] in
            let isDue = now >= state.deliveredSince + Self.removalPause || state.delivered.count >= Self.removalBatch
            guard !state.delivered.isEmpty, isDue else { return [] }
            defer { state.delivered = [] }
            return state.delivered
        }
        if delivered.isEmpty { return }
        do throws(StoreError) { try store.updateEvents(delivered: delivered, setAside: []) } catch {
            // The events are removed later, or delivered again after a restart.
            state.withLock { $0.delivered += delivered }
        }
    }

    private func check() throws(StoreError) {
        let late = state.withLock { $0.schedule.late(now: SystemClock.monotonicNanoseconds()) }
        if !late.isEmpty {
            // Until the change is durable, the later events of the same uploads have to wait.
            try store.updateEvents(delivered: [], setAside: late)
            remove(late)
            note(
                .error,
                "events were set aside, because they could not be delivered to \(receiver.description) within"
                    + " \(settings.retryTime.wholeSeconds) s: \(late.count); see 'onward events list'")
        }
        // After a start each event can be delivered for the retry time, however long the process did not run.
        let isStart = SystemClock.monotonicNanoseconds() - createdAt < rules.retryTime
        let dropped = try store.dropEvents(
            olderThan: wallMilliseconds - settings.keepTime.nanoseconds / 1_000_000, isOnlySetAside: isStart,
            keeping: settings.maxCount)
        if !dropped.isEmpty {
            remove(dropped)
            note(
                .error,
                "events were dropped without a delivery, because they were too old or too many: \(dropped.count)")
        }
        let retried = try store.retriedEvents(limit: rules.maxRetried)
        if retried.isEmpty { return }
        state.withLock { _ = $0.schedule.makeRoom(for: rules.page, now: SystemClock.monotonicNanoseconds()) }
        add(retried)
    }

    /// Removes events from the schedule. Then the next events of their uploads can be due.
    private func remove(_ numbers: [Int64]) {
        state.withLock { $0.schedule.remove(numbers) }
        state.notifyAll()
    }

    // MARK: Attempts

    /// Delivers one event after the other until the delivery is closed.
    private func deliver() {
        while let entry = next() {
            // An operator may have dropped an event while it waited.
            let exists = (try? store.hasEvent(entry.number)) ?? true
            let outcome = exists ? attempt(entry.event) : .gone
            finish(entry, outcome)
        }
    }

    private func next() -> OutboxEntry? {
        while !isClosing {
            let deadline = state.withLock { $0.schedule.nextDue }
            let found = state.wait(until: deadline) { state -> OutboxEntry?? in
                if state.isClosing { return .some(nil) }
                if let entry = state.schedule.next(now: SystemClock.monotonicNanoseconds()) { return entry }
                // Another thread may have changed the time for which this thread has to wait.
                return state.schedule.nextDue == deadline ? nil : .some(nil)
            }
            if let entry = found ?? nil { return entry }
        }
        return nil
    }

    private func attempt(_ event: UploadEvent) -> DeliverySchedule.Outcome {
        let message = EventMessage(
            event: event, source: settings.source, secrets: state.withLock { $0.secrets },
            time: store.configuration.clock().wall / 1_000_000_000)
        switch receiver.deliver(message, isCanceled: { [self] in isClosing }) {
        case .delivered:
            store.countDelivery(succeeded: true)
            return .delivered
        case .failed(let reason, let retryAfter, let isRejection):
            if isClosing { return .interrupted }
            store.countDelivery(succeeded: false)
            report(reason, event)
            return .failed(retryAfter: retryAfter?.nanoseconds, isRejection: isRejection)
        }
    }

    private func finish(_ entry: OutboxEntry, _ outcome: DeliverySchedule.Outcome) {
        let now = SystemClock.monotonicNanoseconds()
        let worksAgain = state.withLock { state in
            state.schedule.finished(entry.number, outcome, now: now, jitter: .random(in: 0...1))
            guard outcome == .delivered else { return false }
            if state.delivered.isEmpty { state.deliveredSince = now }
            state.delivered.append(entry.number)
            defer { state.hasLoggedFailure = false }
            return state.hasLoggedFailure
        }
        state.notifyAll()
        if worksAgain { note(.info, "the delivery of events to \(receiver.description) works again") }
    }

    /// Logs the failure if none was logged within the last minute.
    private func report(_ reason: String, _ event: UploadEvent) {
        let now = SystemClock.monotonicNanoseconds()
        let isDue = state.withLock { state in
            guard now >= state.nextReport else { return false }
            state.nextReport = now + Self.reportPause
            state.hasLoggedFailure = true
            return true
        }
        if isDue {
            note(
                .warning,
                "the event \(event.id) could not be delivered to \(receiver.description): \(reason); the server will try again"
            )
        }
    }
}
