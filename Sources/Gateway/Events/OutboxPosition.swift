import UploadStorage

/// Decides which events of the outbox are read next into a ``DeliverySchedule``, which has room for a limited number. It
/// is a value type: it reads no clock, and does no I/O.
///
/// New events are read once, in their order. If the schedule has removed events from memory, all earlier events are
/// read again in passes, with increasing pauses between them. While the destination rejects all events, old events are
/// read slowly.
struct OutboxPosition: Sendable, Hashable {
    /// A part of the outbox: at most ``DeliverySchedule/Rules/page`` events.
    struct Page: Sendable, Hashable {
        /// The page begins with the first event after this number.
        var after: Int64
        /// Whether a pass reads the events, which were read before.
        var isReadInPass: Bool
    }

    private struct Pass: Sendable, Hashable {
        /// The number of the last event that was read in this pass.
        var position: Int64 = 0
        /// The number of the last event of the pass.
        var end: Int64
    }

    /// Whether there may be events that were never read.
    var canHaveNew = true
    /// Whether more events follow the last page of new ones.
    private var hasBacklog = false
    /// The earliest time of the next page of old events, which applies only while the destination rejects events.
    private var nextOldPage: Int64 = 0
    /// The number of the last event that was read.
    private var end: Int64 = 0
    private var pass: Pass?
    /// The pause before the next pass.
    private var pause: Int64 = 0
    /// The time at which the next pass begins.
    private var nextPass: Int64?

    /// Returns the page that has to be read now, after the schedule has made room for it.
    mutating func nextPage(for schedule: inout DeliverySchedule, now: Int64) -> Page? {
        let mayReadOld = mayReadOld(for: schedule, now: now)
        if canHaveNew, mayReadOld || !hasBacklog, schedule.makeRoom(for: schedule.rules.page, now: now) {
            canHaveNew = false
            return Page(after: end, isReadInPass: false)
        }
        if pass == nil, schedule.hasRemoved { beginPass(of: &schedule, now: now) }
        guard let pass, mayReadOld, schedule.makeRoom(for: Self.roomForPass(schedule), now: now) else { return nil }
        return Page(after: pass.position, isReadInPass: true)
    }

    /// Whether ``nextPage(for:now:)`` would return a page now. The beginning of the next pass is not considered.
    func hasPage(for schedule: DeliverySchedule, now: Int64) -> Bool {
        let mayReadOld = mayReadOld(for: schedule, now: now)
        return canHaveNew && (mayReadOld || !hasBacklog) && schedule.canMakeRoom(for: schedule.rules.page, now: now)
            || pass != nil && mayReadOld && schedule.canMakeRoom(for: Self.roomForPass(schedule), now: now)
    }

    private func mayReadOld(for schedule: DeliverySchedule, now: Int64) -> Bool {
        !schedule.isRejecting || now >= nextOldPage
    }

    /// The room that a pass needs: two pages, so that it never occupies the page that new events need.
    private static func roomForPass(_ schedule: DeliverySchedule) -> Int { 2 * schedule.rules.page }

    private mutating func beginPass(of schedule: inout DeliverySchedule, now: Int64) {
        guard let time = nextPass else {
            let pauses = schedule.rules.pauses
            pause = min(max(2 * pause, pauses.lowerBound), pauses.upperBound)
            nextPass = now + pause
            return
        }
        guard now >= time else { return }
        schedule.beginPass()
        pass = Pass(end: end)
        nextPass = nil
    }

    /// Adds the events of a page to the schedule.
    /// - Parameters:
    ///   - entries: the events, in their order; fewer than a page only at the end of the outbox.
    ///   - delivered: the numbers of events that are not added.
    ///   - age: returns the nanoseconds for which an event has waited.
    mutating func add(
        _ entries: [OutboxEntry], of page: Page, except delivered: Set<Int64> = [],
        to schedule: inout DeliverySchedule, now: Int64, age: (OutboxEntry) -> Int64
    ) {
        let isFull = entries.count >= schedule.rules.page
        let last = entries.last?.number ?? page.after
        if isFull || page.isReadInPass { nextOldPage = now + schedule.rules.slowPause }
        // Events that an operator retries are read separately.
        for entry in entries where entry.state == .waiting && !delivered.contains(entry.number) {
            if page.isReadInPass, entry.number > pass?.end ?? 0 { break }
            schedule.add(entry, age: age(entry), now: now, isReadInPass: page.isReadInPass)
        }
        if !page.isReadInPass {
            end = last
            hasBacklog = isFull
            if isFull { canHaveNew = true }
        } else if let pass, isFull, last < pass.end {
            self.pass?.position = last
        } else {
            pass = nil
            schedule.endPass()
            if !schedule.hasRemoved { pause = 0 }
        }
    }
}
