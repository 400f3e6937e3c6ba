import UploadStorage

/// Decides which event is delivered next: in order for each upload, with increasing pauses after failures. It is a
/// value type: it reads no clock, and does no I/O.
///
/// It contains a limited number of events. If it is full, it removes events that have failed, together with the later
/// events of their uploads, so that they do not hold up others: see ``OutboxPosition``. All times are nanoseconds of one
/// monotonic clock.
struct DeliverySchedule: Sendable, Hashable {
    /// The limits of a schedule: pauses, times, and maximum numbers of attempts and events.
    struct Rules: Sendable, Hashable {
        /// The pauses after failed attempts: the first one, and the longest.
        var pauses: ClosedRange<Int64> = 1_000_000_000...300_000_000_000
        /// The time after which an event that could not be delivered is set aside.
        var retryTime: Int64 = 86_400_000_000_000
        /// The maximum number of simultaneous attempts.
        var concurrency = 4
        /// The number of failures in sequence after which the destination counts as unavailable: from then on there is
        /// one attempt at a time.
        var failuresUntilUnavailable = 8
        /// The number of rejections without a delivery after which the destination counts as rejecting: from then on
        /// older events are read slowly.
        var rejectionsUntilSlow = 1024
        /// The pause between pages of older events while the destination is rejecting.
        var slowPause: Int64 = 4_000_000_000
        /// The maximum number of events. At most half of them are events that an operator retries.
        var capacity = 1024
        /// The number of events that are read from the outbox together.
        var page = 256

        /// The maximum number of events that an operator retries.
        var maxRetried: Int { capacity / 2 }
    }

    private struct ScheduledEvent: Sendable, Hashable {
        var stored: OutboxEntry
        /// The start of the retry time of the event.
        var start: Int64
        var attempts = 0
        var due: Int64
        var isRunning = false

        func isWaiting(in uploads: Set<String>) -> Bool {
            stored.state == .waiting && uploads.contains(stored.event.upload)
        }
    }

    let rules: Rules
    /// The events of each upload are in the order of their numbers, except that retried events follow at the end.
    private var entries: [ScheduledEvent] = []
    private var failures = 0
    private var rejections = 0
    /// The time of the next attempt, which applies only while the destination is unavailable.
    private var nextProbe: Int64 = 0
    private var probePause: Int64 = 0
    private var running = 0
    /// The uploads of the events that were removed from the schedule since the last pass began. These events were read, and are
    /// still in the outbox.
    private var removed = RemovedUploads()
    /// During a pass, the uploads of the events that were removed before the pass began.
    private var removedBefore = RemovedUploads()

    init(_ rules: Rules = Rules()) { self.rules = rules }

    /// The number of events that can be added.
    var room: Int { rules.capacity - entries.count }

    /// Whether the last attempts have failed, so the destination counts as unavailable.
    var isUnavailable: Bool { failures >= rules.failuresUntilUnavailable }

    /// Whether many events were rejected, and none was delivered since.
    var isRejecting: Bool { rejections >= rules.rejectionsUntilSlow }

    /// Adds an event, unless it has to follow a removed event of its upload.
    /// - Parameters:
    ///   - age: the nanoseconds for which the event has waited.
    ///   - isReadInPass: whether a pass has read the event. A pass reads the events of an upload in order.
    mutating func add(_ entry: OutboxEntry, age: Int64, now: Int64, isReadInPass: Bool = false) {
        guard room > 0, !entries.contains(where: { $0.stored.number == entry.number }) else { return }
        if entry.state == .retried {
            guard entries.count(where: { $0.stored.state == .retried }) < rules.maxRetried else { return }
            // An operator has requested another attempt, so the time of the event begins again.
            return entries.append(ScheduledEvent(stored: entry, start: now, due: now))
        }
        let upload = entry.event.upload
        if removed.contains(upload) || !isReadInPass && removedBefore.contains(upload) {
            return removed.insert(upload)
        }
        entries.append(ScheduledEvent(stored: entry, start: now - max(0, age), due: now))
    }

    // MARK: Removed events

    /// Whether the outbox has events that were read before and are not in the schedule.
    var hasRemoved: Bool { !removed.isEmpty }

    /// Begins to read all events of the outbox again.
    mutating func beginPass() { (removedBefore, removed) = (removed, RemovedUploads()) }

    /// Ends the pass: each event that was removed before it is now in the schedule, or was removed again.
    mutating func endPass() { removedBefore = RemovedUploads() }

    /// Whether the schedule can make room for `count` more events.
    func canMakeRoom(for count: Int, now: Int64) -> Bool {
        if room >= count { return true }
        let uploads = removable(now: now)
        return room + entries.count { $0.isWaiting(in: uploads) } >= count
    }

    /// Removes events if that is necessary to have room for `count` more events.
    /// - Returns: whether there is room.
    mutating func makeRoom(for count: Int, now: Int64) -> Bool {
        if room >= count { return true }
        guard canMakeRoom(for: count, now: now) else { return false }
        let uploads = removable(now: now)
        for entry in entries where entry.isWaiting(in: uploads) { removed.insert(entry.stored.event.upload) }
        entries.removeAll { $0.isWaiting(in: uploads) }
        return true
    }

    /// The uploads whose first event has failed and waits for its next attempt. There are none while the destination is
    /// unavailable, because then these events delay no other event.
    private func removable(now: Int64) -> Set<String> {
        let hasFailed = { (entry: ScheduledEvent) in entry.attempts > 0 && !entry.isRunning && entry.due > now }
        guard !isUnavailable, entries.contains(where: hasFailed) else { return [] }
        return Set(firstOfUploads(where: hasFailed).map { entries[$0].stored.event.upload })
    }

    // MARK: Attempts

    /// Returns the next event to deliver, and counts it as running; `nil` if none is due.
    mutating func next(now: Int64) -> OutboxEntry? {
        guard let index = nextIndex(now: now) else { return nil }
        entries[index].isRunning = true
        running += 1
        return entries[index].stored
    }

    private func nextIndex(now: Int64) -> Int? {
        guard running < (isUnavailable ? 1 : rules.concurrency), !isUnavailable || now >= nextProbe else { return nil }
        // While the destination is unavailable, the event with the fewest attempts is next: an event that was not tried
        // before shows whether only some events fail. Otherwise the event that has waited longest is next, so that many
        // failing events do not hold up others.
        return firstOfUploads { !$0.isRunning && (isUnavailable || $0.due <= now) }
            .min { first, second in
                isUnavailable
                    ? entries[first].attempts < entries[second].attempts : entries[first].due < entries[second].due
            }
    }

    /// The indexes of the entries that are the first of their uploads and meet a condition.
    private func firstOfUploads(where condition: (ScheduledEvent) -> Bool) -> [Int] {
        var uploads: Set<String> = []
        return entries.indices.filter {
            uploads.insert(entries[$0].stored.event.upload).inserted && condition(entries[$0])
        }
    }

    /// The time at which ``next(now:)`` has to be called again; `nil` if that depends only on running attempts and new
    /// events.
    var nextDue: Int64? {
        guard running < (isUnavailable ? 1 : rules.concurrency) else { return nil }
        let due = firstOfUploads { !$0.isRunning }.map { entries[$0].due }.min()
        return due.map { isUnavailable ? nextProbe : $0 }
    }

    /// How an attempt ended.
    enum Outcome: Sendable, Hashable {
        case delivered
        /// The destination does not accept the event now. `retryAfter` is the pause in nanoseconds that the destination
        /// requests. A rejection concerns this event alone: the destination is available.
        case failed(retryAfter: Int64?, isRejection: Bool = false)
        /// The event is no longer in the outbox.
        case gone
        /// The attempt was interrupted by this process.
        case interrupted
    }

    /// Ends an attempt.
    /// - Parameter jitter: a random number from 0 to 1, so that the attempts of many events do not coincide.
    mutating func finished(_ number: Int64, _ outcome: Outcome, now: Int64, jitter: Double = 0.5) {
        guard let index = entries.firstIndex(where: { $0.stored.number == number }), entries[index].isRunning else {
            return
        }
        entries[index].isRunning = false
        running -= 1
        switch outcome {
        case .gone: entries.remove(at: index)
        case .interrupted: break
        case .delivered:
            entries.remove(at: index)
            rejections = 0
            becomeAvailable(now: now)
        case .failed(let retryAfter, let isRejection):
            entries[index].attempts += 1
            if isRejection {
                rejections += 1
                becomeAvailable(now: now)
            } else {
                failures += 1
            }
            let pause = Self.pause(after: entries[index].attempts, rules.pauses)
            entries[index].due = now + max(Self.varied(pause, jitter), retryAfter ?? 0)
            if isUnavailable {
                probePause = min(max(2 * probePause, rules.pauses.lowerBound), rules.pauses.upperBound)
                nextProbe = now + max(Self.varied(probePause, jitter), retryAfter ?? 0)
            }
        }
    }

    /// Notes that the destination has accepted or rejected an event. If it was unavailable before, all events are due.
    private mutating func becomeAvailable(now: Int64) {
        if isUnavailable { for index in entries.indices { entries[index].due = min(entries[index].due, now) } }
        (failures, probePause) = (0, 0)
    }

    private static func pause(after attempts: Int, _ range: ClosedRange<Int64>) -> Int64 {
        attempts > 30 ? range.upperBound : min(range.lowerBound << (attempts - 1), range.upperBound)
    }

    /// A pause that is up to a fifth shorter or longer.
    private static func varied(_ pause: Int64, _ jitter: Double) -> Int64 {
        Int64(Double(pause) * (0.8 + 0.4 * jitter))
    }

    /// The numbers of the events that could not be delivered within the retry time.
    func late(now: Int64) -> [Int64] {
        entries.filter { !$0.isRunning && $0.attempts > 0 && now - $0.start >= rules.retryTime }.map(\.stored.number)
    }

    /// Removes events that were dropped or set aside. Running attempts continue.
    mutating func remove(_ numbers: [Int64]) {
        let numbers = Set(numbers)
        running -= entries.count { $0.isRunning && numbers.contains($0.stored.number) }
        entries.removeAll { numbers.contains($0.stored.number) }
    }
}
