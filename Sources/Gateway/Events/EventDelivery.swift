import HTTPSemantics
import SystemCalls
import TransferServer
import UploadStorage

/// Delivers the events of a store to one destination.
///
/// The store records events in the transactions of what they report (`StoreConfiguration.recordsEvents`). Each event is
/// delivered at least once, and the events of one upload in their order. An event that cannot be delivered is tried
/// again with increasing pauses, then set aside, and dropped after ``EventSettings/keepTime``. Uploads never wait for a
/// delivery.
public final class EventDelivery: Sendable {
    private struct State {
        var schedule: DeliverySchedule
        /// The events after this number are not in the schedule yet.
        var loaded: Int64 = 0
        var mayHaveMore = true
        /// Events that were delivered and are still in the outbox, and when the first of them was delivered.
        var delivered: [Int64] = []
        var deliveredSince: Int64 = 0
        var failure: String?
        var nextReport: Int64 = 0
        var secrets: [EventSecret]
        var isClosing = false
        var threads: [WorkerThread] = []
    }

    /// Delivered events are removed together. After a crash within this time, in nanoseconds, they are delivered again.
    private static let removalPause: Int64 = 1_000_000_000
    private static let removalBatch = 512
    private static let page = 256
    /// The pause in nanoseconds between checks of the outbox for events that are too old, too many, or tried again.
    private static let checkPause: Int64 = 2_000_000_000
    /// The pause in nanoseconds between two lines of the log about failures.
    private static let reportPause: Int64 = 60_000_000_000

    private let settings: EventSettings
    private let store: UploadStore
    private let receiver: any EventReceiver
    private let rules: DeliverySchedule.Rules
    private let note: @Sendable (LogLevel, String) -> Void
    private let state: Monitor<State>
    private let createdAt = SystemClock.monotonicNanoseconds()
    private let wallAtCreation = SystemClock.realtimeNanoseconds() / 1_000_000

    /// - Parameters:
    ///   - settings: the destination and the limits.
    ///   - store: a store whose configuration has `recordsEvents`. It has to be open until ``close()`` returns.
    ///   - note: called with lines for the log of the program.
    public init(
        _ settings: EventSettings, from store: UploadStore,
        note: @escaping @Sendable (LogLevel, String) -> Void = { _, _ in }
    ) {
        self.settings = settings
        self.store = store
        self.note = note
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
            state.withLock { $0.mayHaveMore = true }
            state.notifyAll()
        }
        do throws(Errno) {
            var threads = [try WorkerThread(name: "events") { [self] in keep() }]
            for _ in 0..<rules.concurrency {
                threads.append(try WorkerThread(name: "event") { [self] in deliver() })
            }
            state.withLock { [threads] in $0.threads = threads }
        } catch {
            close()
            throw error
        }
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
    private func keep() {
        var nextCheck: Int64 = 0
        while !isClosing {
            let now = SystemClock.monotonicNanoseconds()
            do throws(StoreError) {
                try load()
                removeDelivered(now: now)
                if now >= nextCheck {
                    nextCheck = now + Self.checkPause
                    try check()
                }
            } catch {
                if error == .superseded { return }
                note(.error, "the outbox of events cannot be read: \(error)")
                nextCheck = now + Self.reportPause
            }
            let deadline = min(nextCheck, SystemClock.monotonicNanoseconds() + Self.removalPause)
            _ = state.wait(until: deadline) { state -> Void? in
                let canLoad = state.mayHaveMore && state.schedule.room >= Self.page
                return state.isClosing || canLoad || state.delivered.count >= Self.removalBatch ? () : nil
            }
        }
    }

    private func load() throws(StoreError) {
        while true {
            let position = state.withLock { state -> Int64? in
                guard state.mayHaveMore, state.schedule.room >= Self.page else { return nil }
                state.mayHaveMore = false
                return state.loaded
            }
            guard let position else { return }
            let entries = try store.events(after: position, limit: Self.page)
            add(entries) { state in
                state.loaded = entries.last?.number ?? position
                if entries.count == Self.page { state.mayHaveMore = true }
            }
        }
    }

    private func add(_ entries: [OutboxEntry], _ change: (inout State) -> Void) {
        let now = SystemClock.monotonicNanoseconds()
        let wall = wallMilliseconds
        state.withLock { state in
            // Retried events are read from the outbox, which contains delivered events until they are removed.
            let delivered = Set(state.delivered)
            for entry in entries where !delivered.contains(entry.number) {
                // The time during which this process did not run does not count.
                let age = min((wall - entry.event.time) * 1_000_000, now - createdAt)
                state.schedule.add(entry, age: age, now: now)
            }
            change(&state)
        }
        if !entries.isEmpty { state.notifyAll() }
    }

    /// The time in milliseconds since 1970, without changes by which the wall clock was set forward while this object
    /// existed: they must not make events old.
    private var wallMilliseconds: Int64 {
        let elapsed = (SystemClock.monotonicNanoseconds() - createdAt) / 1_000_000
        return min(SystemClock.realtimeNanoseconds() / 1_000_000, wallAtCreation + elapsed)
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
            // They are removed later, or delivered again after a restart.
            state.withLock { $0.delivered += delivered }
        }
    }

    private func check() throws(StoreError) {
        let late = state.withLock { $0.schedule.setAside(now: SystemClock.monotonicNanoseconds()) }
        if !late.isEmpty {
            do throws(StoreError) { try store.updateEvents(delivered: [], setAside: late.map(\.number)) } catch {
                add(late) { _ in }
                throw error
            }
            note(
                .error,
                "events set aside, because they could not be delivered to \(receiver.description) within"
                    + " \(settings.retryTime.wholeSeconds) s: \(late.count); see 'onward events list'")
        }
        // After a start each event can be delivered for this time, however long the process did not run.
        let isStart = SystemClock.monotonicNanoseconds() - createdAt < rules.retryTime
        let dropped = try store.dropEvents(
            olderThan: wallMilliseconds - settings.keepTime.nanoseconds / 1_000_000, onlySetAside: isStart,
            keeping: settings.maximumCount)
        if !dropped.isEmpty {
            state.withLock { $0.schedule.remove(dropped) }
            note(
                .error,
                "events dropped without a delivery, because they were too old or too many: \(dropped.count)")
        }
        let room = state.withLock { $0.schedule.room }
        if room > 0 { add(try store.retriedEvents(limit: min(room, Self.page))) { _ in } }
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
        while true {
            let deadline = state.withLock { $0.schedule.nextDue(now: SystemClock.monotonicNanoseconds()) }
            let found = state.wait(until: deadline) { state -> OutboxEntry?? in
                if state.isClosing { return .some(nil) }
                return state.schedule.next(now: SystemClock.monotonicNanoseconds()).map { .some($0) }
            }
            if let found { return found }
        }
    }

    private func attempt(_ event: UploadEvent) -> DeliverySchedule.Outcome {
        let message = EventMessage(
            event: event, source: settings.source, secrets: state.withLock { $0.secrets },
            time: SystemClock.realtimeSeconds())
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
        let failure = state.withLock { state -> String? in
            state.schedule.finished(entry.number, outcome, now: now, jitter: .random(in: 0...1))
            guard outcome == .delivered else { return nil }
            if state.delivered.isEmpty { state.deliveredSince = now }
            state.delivered.append(entry.number)
            defer { state.failure = nil }
            return state.failure
        }
        state.notifyAll()
        if failure != nil { note(.info, "events are delivered to \(receiver.description) again") }
    }

    /// Logs the failure if none was logged within the last minute.
    private func report(_ reason: String, _ event: UploadEvent) {
        let now = SystemClock.monotonicNanoseconds()
        let isDue = state.withLock { state in
            guard now >= state.nextReport else { return false }
            state.nextReport = now + Self.reportPause
            state.failure = reason
            return true
        }
        if isDue {
            note(
                .warning,
                "the event \(event.id) could not be delivered to \(receiver.description): \(reason); it is tried again")
        }
    }
}
