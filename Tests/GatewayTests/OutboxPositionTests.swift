import TestSupport
import Testing
import UploadStorage

@testable import Gateway

/// Tests the reading of an outbox that has more events than a schedule can contain.
@Suite("The reading of the outbox")
struct OutboxPositionTests {
    private static let second: Int64 = 1_000_000_000

    private static func event(_ upload: String, _ kind: UploadEvent.Kind = .created) -> UploadEvent {
        UploadEvent(
            id: upload + kind.rawValue, kind: kind, time: 0, upload: upload, principal: "anna", method: "PUT",
            target: "/files/x")
    }

    /// An outbox, the schedule of its events, and a receiver that rejects events.
    private struct Delivery {
        var outbox: [OutboxEntry] = []
        var schedule: DeliverySchedule
        var position = OutboxPosition()
        var now: Int64 = 0
        /// The events that were delivered, with their times.
        var delivered: [(event: UploadEvent, time: Int64)] = []
        var attempts: [Int64: Int] = [:]
        private var lastNumber: Int64 = 0

        init(rejectionsUntilSlow: Int = .max) {
            var rules = DeliverySchedule.Rules()
            rules.capacity = 16
            rules.page = 4
            rules.pauses = OutboxPositionTests.second...(8 * OutboxPositionTests.second)
            rules.retryTime = .max
            rules.rejectionsUntilSlow = rejectionsUntilSlow
            schedule = DeliverySchedule(rules)
        }

        mutating func record(_ event: UploadEvent, _ state: OutboxEntry.State = .waiting) {
            lastNumber += 1
            outbox.append(OutboxEntry(number: lastNumber, event: event, state: state))
            position.canHaveNew = true
        }

        private mutating func read() {
            while let page = position.nextPage(for: &schedule, now: now) {
                let entries = outbox.filter { $0.number > page.after }.prefix(schedule.rules.page)
                position.add(Array(entries), of: page, to: &schedule, now: now) { _ in 0 }
                let room = schedule.room
                #expect(room >= 0)
            }
        }

        /// Reads and delivers events until a time.
        mutating func run(until end: Int64, isRejected: (UploadEvent) -> Bool) {
            while now < end {
                read()
                while let entry = schedule.next(now: now) {
                    attempts[entry.number, default: 0] += 1
                    if isRejected(entry.event) {
                        schedule.finished(entry.number, .failed(retryAfter: nil, isRejection: true), now: now)
                    } else {
                        let first = outbox.first { $0.event.upload == entry.event.upload }
                        #expect(first == entry, "an earlier event of the upload was not delivered")
                        schedule.finished(entry.number, .delivered, now: now)
                        outbox.removeAll { $0.number == entry.number }
                        delivered.append((entry.event, now))
                    }
                    read()
                }
                now += OutboxPositionTests.second / 10
            }
        }
    }

    @Test("any number of rejected events does not hold up others, and is tried again with pauses, in order")
    func rejected() {
        var delivery = Delivery()
        for number in 0..<300 { delivery.record(Self.event("bad-\(number)")) }
        for number in 0..<300 where number % 2 == 0 { delivery.record(Self.event("bad-\(number)", .completed)) }
        for number in 0..<20 { delivery.record(Self.event("good-\(number)")) }
        for round in 1...100 {
            delivery.run(until: Int64(round) * Self.second) { $0.upload.hasPrefix("bad") }
            if round <= 20 { delivery.record(Self.event("good-\(round - 1)", .completed)) }
            delivery.record(Self.event("new-\(round)"))
        }
        let times = Dictionary(uniqueKeysWithValues: delivery.delivered.map { ($0.event.id, $0.time) })
        // A few of these events may be delivered later: the set of removed uploads can contain their uploads by
        // mistake.
        #expect((0..<20).count { (times["good-\($0)created"] ?? .max) < Self.second } >= 18)
        #expect((0..<20).count { (times["good-\($0)completed"] ?? .max) < Int64($0 + 2) * Self.second } >= 18)
        #expect((1..<100).count { (times["new-\($0)created"] ?? .max) < Int64($0 + 1) * Self.second } >= 95)
        #expect(times.keys.allSatisfy { !$0.hasPrefix("bad") })
        let bad = (1...300).map { delivery.attempts[$0] ?? 0 }
        #expect(bad.allSatisfy { (5...40).contains($0) }, "\(bad.min() ?? 0) to \(bad.max() ?? 0) attempts")

        delivery.run(until: 130 * Self.second) { _ in false }
        #expect(delivery.outbox.isEmpty, "\(delivery.outbox.count) events are left")
    }

    @Test(
        "a destination that rejects everything gets old events slowly, and all of them after the first delivery"
    )
    func slow() {
        var delivery = Delivery(rejectionsUntilSlow: 16)
        for number in 0..<400 { delivery.record(Self.event("bad-\(number)")) }
        delivery.run(until: 20 * Self.second) { _ in true }
        // The first 16 events, those that were read before the 16th rejection, and a page of four every four seconds.
        #expect((16...48).contains(delivery.attempts.count), "\(delivery.attempts.count)")
        delivery.record(Self.event("good"))
        delivery.run(until: 21 * Self.second) { _ in true }
        #expect(delivery.attempts.count <= 52)
        delivery.run(until: 200 * Self.second) { _ in false }
        #expect(delivery.outbox.isEmpty)
    }

    @Test("a new event is sent at once to a destination that rejects everything")
    func new() {
        var delivery = Delivery(rejectionsUntilSlow: 16)
        for number in 0..<18 { delivery.record(Self.event("bad-\(number)")) }
        delivery.run(until: 20 * Self.second) { _ in true }
        #expect(delivery.schedule.isRejecting && delivery.attempts.count == 18)
        delivery.record(Self.event("good"))
        delivery.run(until: 20 * Self.second + 1) { $0.upload != "good" }
        #expect(delivery.delivered.map(\.event.upload) == ["good"])
    }

    @Test("events that an operator retries occupy at most half of the schedule, and are not removed")
    func retried() {
        var delivery = Delivery()
        for number in 0..<30 { delivery.record(Self.event("retried-\(number)"), .retried) }
        delivery.run(until: Self.second) { _ in true }
        #expect(delivery.attempts.isEmpty && delivery.schedule.room == 16)
        for entry in delivery.outbox { delivery.schedule.add(entry, age: 0, now: delivery.now) }
        #expect(delivery.schedule.room == 8)
        for number in 0..<50 { delivery.record(Self.event("bad-\(number)")) }
        delivery.record(Self.event("good"))
        delivery.run(until: 3 * Self.second) { $0.upload != "good" }
        #expect(delivery.delivered.map(\.event.upload) == ["good"])
        // The first pauses have one, two and four seconds.
        #expect((1...8).allSatisfy { [2, 3].contains(delivery.attempts[$0]) })
    }

    @Test("a set of uploads contains what was inserted, and hardly anything else")
    func uploads() {
        var uploads = RemovedUploads()
        #expect(uploads.isEmpty && !uploads.contains("0"))
        for number in 0..<20_000 { uploads.insert("\(number)") }
        #expect(!uploads.isEmpty && (0..<20_000).allSatisfy { uploads.contains("\($0)") })
        // The probability of a false positive is about 1 in 2,700.
        #expect((20_000..<40_000).count { uploads.contains("\($0)") } < 100)
    }
}
