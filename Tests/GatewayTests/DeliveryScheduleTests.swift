import TestSupport
import Testing
import UploadStorage

@testable import Gateway

@Suite("The schedule of deliveries")
struct DeliveryScheduleTests {
    private static let second: Int64 = 1_000_000_000

    private static func entry(
        _ number: Int64, of upload: String, _ state: OutboxEntry.State = .waiting
    ) -> OutboxEntry {
        OutboxEntry(
            number: number,
            event: UploadEvent(
                id: "event-\(number)", kind: .created, time: 0, upload: upload, principal: "anna", method: "PUT",
                target: "/files/x"),
            state: state)
    }

    private func schedule(
        _ uploads: String..., adjust: (inout DeliverySchedule.Rules) -> Void = { _ in }
    ) -> DeliverySchedule {
        var rules = DeliverySchedule.Rules()
        rules.retryTime = 100 * Self.second
        adjust(&rules)
        var schedule = DeliverySchedule(rules)
        for (index, upload) in uploads.enumerated() {
            schedule.add(Self.entry(Int64(index + 1), of: upload), age: 0, now: 0)
        }
        return schedule
    }

    @Test("the events of one upload are delivered one after the other, those of several uploads simultaneously")
    func order() {
        var schedule = schedule("a", "a", "b", "a")
        #expect(schedule.next(now: 0)?.number == 1)
        #expect(schedule.next(now: 0)?.number == 3)
        #expect(schedule.next(now: 0) == nil)
        schedule.finished(1, .delivered, now: 0)
        #expect(schedule.next(now: 0)?.number == 2)
        schedule.finished(2, .delivered, now: 0)
        #expect(schedule.next(now: 0)?.number == 4)
    }

    @Test("there is a maximum of simultaneous attempts")
    func concurrency() {
        var schedule = schedule("a", "b", "c") { $0.concurrency = 2 }
        #expect(schedule.next(now: 0) != nil && schedule.next(now: 0) != nil)
        #expect(schedule.next(now: 0) == nil && schedule.nextDue == nil)
        schedule.finished(2, .delivered, now: 0)
        #expect(schedule.next(now: 0)?.number == 3)
    }

    @Test("after failures the pauses grow to a maximum, and the later events of the upload wait")
    func pauses() {
        var schedule = schedule("a", "a") { rules in
            rules.failuresUntilUnavailable = .max
            rules.pauses = Self.second...(8 * Self.second)
            rules.retryTime = .max
        }
        var now: Int64 = 0
        for pause in [1, 2, 4, 8, 8, 8] as [Int64] {
            #expect(schedule.next(now: now)?.number == 1)
            schedule.finished(1, .failed(retryAfter: nil), now: now)
            #expect(schedule.nextDue == now + pause * Self.second)
            #expect(schedule.next(now: now + pause * Self.second - 1) == nil)
            now += pause * Self.second
        }
    }

    @Test("a pause varies by a fifth, and is at least the time that the destination requests")
    func jitter() {
        for (jitter, retryAfter, due) in [
            (0.0, nil, 800_000_000), (1.0, nil, 1_200_000_000), (1.0, 5 * Self.second, 5 * Self.second),
        ] as [(Double, Int64?, Int64)] {
            var schedule = schedule("a")
            #expect(schedule.next(now: 0) != nil)
            schedule.finished(1, .failed(retryAfter: retryAfter), now: 0, jitter: jitter)
            #expect(schedule.nextDue == due)
        }
    }

    @Test("an event that always fails does not delay the events of other uploads")
    func poison() {
        var schedule = schedule("bad", "a", "b", "c") { $0.concurrency = 1 }
        #expect(schedule.next(now: 0)?.number == 1)
        schedule.finished(1, .failed(retryAfter: nil), now: 0)
        for number in 2...4 {
            #expect(schedule.next(now: 0)?.number == Int64(number))
            schedule.finished(Int64(number), .delivered, now: 0)
        }
        #expect(schedule.next(now: Self.second)?.number == 1)
    }

    @Test("rejected events do not make the destination unavailable")
    func rejections() {
        var schedule = schedule("a", "b", "c", "d", "e") { $0.failuresUntilUnavailable = 3 }
        for number in 1...4 {
            #expect(schedule.next(now: 0)?.number == Int64(number))
            schedule.finished(Int64(number), .failed(retryAfter: nil, isRejection: true), now: 0)
        }
        #expect(!schedule.isUnavailable && schedule.next(now: 0)?.number == 5)
    }

    @Test("an unavailable destination gets one attempt at a time, and after a success all events at once")
    func unavailable() {
        var schedule = schedule("a", "b", "c", "d", "e") { $0.failuresUntilUnavailable = 3 }
        for number in 1...3 {
            #expect(schedule.next(now: 0)?.number == Int64(number))
            schedule.finished(Int64(number), .failed(retryAfter: nil), now: 0)
        }
        #expect(schedule.isUnavailable && schedule.next(now: 0) == nil)
        #expect(schedule.nextDue == Self.second)
        // An event that was not tried before comes first.
        #expect(schedule.next(now: Self.second)?.number == 4)
        #expect(schedule.next(now: Self.second) == nil)
        schedule.finished(4, .failed(retryAfter: nil), now: Self.second)
        #expect(schedule.nextDue == 3 * Self.second)
        #expect(schedule.next(now: 3 * Self.second)?.number == 5)
        schedule.finished(5, .delivered, now: 3 * Self.second)
        #expect(!schedule.isUnavailable)
        #expect((0..<4).map { _ in schedule.next(now: 3 * Self.second)?.number } == [1, 2, 3, 4])
    }

    @Test("after a rejection all events are due, and the next outage begins with a short pause")
    func rejectionDuringOutage() {
        var schedule = schedule("a", "b", "c", "d") { rules in
            rules.failuresUntilUnavailable = 2
            rules.retryTime = .max
        }
        var now: Int64 = 0
        func fail(_ count: Int) {
            for _ in 0..<count {
                now = max(now, schedule.nextDue ?? 0)
                guard let entry = schedule.next(now: now) else { return #expect(Bool(false), "no event is due") }
                schedule.finished(entry.number, .failed(retryAfter: nil), now: now)
            }
        }
        fail(12)
        #expect(schedule.isUnavailable && schedule.nextDue == now + 300 * Self.second)
        now += 300 * Self.second
        let probe = schedule.next(now: now)
        schedule.finished(probe?.number ?? 0, .failed(retryAfter: nil, isRejection: true), now: now)
        #expect(!schedule.isUnavailable && !schedule.isRejecting)
        #expect(Set((0..<3).compactMap { _ in schedule.next(now: now)?.number }).count == 3)
        for number in 1...4 as ClosedRange<Int64> { schedule.finished(number, .interrupted, now: now) }
        fail(2)
        #expect(schedule.isUnavailable && schedule.nextDue == now + Self.second)
    }

    @Test("an event that was tried is set aside after the retry time, and the next event of its upload follows")
    func settingAside() {
        var schedule = schedule("a", "a", "b")
        #expect(schedule.next(now: 0)?.number == 1)
        #expect(schedule.late(now: 200 * Self.second) == [], "an attempt is running")
        schedule.finished(1, .failed(retryAfter: nil), now: 0)
        #expect(schedule.late(now: 99 * Self.second) == [])
        // The third event was never tried.
        #expect(schedule.late(now: 100 * Self.second) == [1])
        schedule.remove([1])
        #expect(schedule.next(now: 100 * Self.second)?.number == 2)
    }

    @Test("the time before the event was loaded counts, but not for an event that an operator retries")
    func age() {
        var schedule = schedule()
        schedule.add(Self.entry(1, of: "a"), age: 60 * Self.second, now: 70 * Self.second)
        schedule.add(Self.entry(2, of: "b", .retried), age: 900 * Self.second, now: 70 * Self.second)
        for number in [1, 2] as [Int64] {
            _ = schedule.next(now: 70 * Self.second)
            schedule.finished(number, .failed(retryAfter: nil), now: 70 * Self.second)
        }
        #expect(schedule.late(now: 110 * Self.second) == [1])
        #expect(schedule.late(now: 170 * Self.second) == [1, 2])
    }

    @Test("an event is added once, and removed events are not delivered")
    func removal() {
        var schedule = schedule("a", "b") { $0.capacity = 10 }
        schedule.add(Self.entry(1, of: "a"), age: 0, now: 0)
        #expect(schedule.room == 8)
        _ = schedule.next(now: 0)
        schedule.remove([1, 2])
        #expect(schedule.room == 10 && schedule.next(now: 0) == nil)
        schedule.finished(1, .delivered, now: 0)
        schedule.add(Self.entry(3, of: "a"), age: 0, now: 0)
        #expect(schedule.next(now: 0)?.number == 3)
    }

    @Test("an interrupted attempt and an event that no longer exists count neither as success nor as failure")
    func interruption() {
        var schedule = schedule("a", "b")
        _ = schedule.next(now: 0)
        schedule.finished(1, .interrupted, now: 0)
        #expect(schedule.next(now: 0)?.number == 1)
        schedule.finished(1, .gone, now: 0)
        #expect(schedule.next(now: 0)?.number == 2)
    }

    @Test("among the events that are due, the one that has waited longest is next")
    func fairness() {
        var schedule = schedule("a") { $0.concurrency = 1 }
        #expect(schedule.next(now: 0)?.number == 1)
        schedule.finished(1, .failed(retryAfter: nil, isRejection: true), now: 0)
        schedule.add(Self.entry(2, of: "b"), age: 0, now: Self.second / 2)
        schedule.add(Self.entry(3, of: "c"), age: 0, now: 2 * Self.second)
        for number in [2, 1, 3] as [Int64] {
            #expect(schedule.next(now: 2 * Self.second)?.number == number)
            schedule.finished(number, .delivered, now: 2 * Self.second)
        }
    }

    @Test("generated histories: order, limits, and every event is delivered or set aside", arguments: 1...60)
    func histories(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var rules = DeliverySchedule.Rules()
        rules.capacity = 16
        rules.concurrency = .random(in: 1...4, using: &generator)
        rules.failuresUntilUnavailable = .random(in: 1...5, using: &generator)
        rules.retryTime = .random(in: 1...40, using: &generator) * Self.second
        var schedule = DeliverySchedule(rules)
        var waiting = (1...80).map { Self.entry(Int64($0), of: "\(Int.random(in: 0..<6, using: &generator))") }
        let uploads = Dictionary(uniqueKeysWithValues: waiting.map { ($0.number, $0.event.upload) })
        var isUp = true
        var now: Int64 = 0
        var running: [OutboxEntry] = []
        var ended: [Int64] = []
        var steps = 0
        while ended.count < 80 {
            steps += 1
            #expect(steps < 20_000, "seed \(seed)")
            if steps >= 20_000 { return }
            if steps % 40 == 0 { isUp = steps > 2000 || .random(using: &generator) }
            while schedule.room > 0, !waiting.isEmpty { schedule.add(waiting.removeFirst(), age: 0, now: now) }
            if let entry = schedule.next(now: now) {
                #expect(!running.contains { $0.event.upload == entry.event.upload }, "seed \(seed)")
                let earlier = ended.filter { uploads[$0] == entry.event.upload }
                #expect(earlier.allSatisfy { $0 < entry.number }, "seed \(seed)")
                running.append(entry)
                #expect(running.count <= rules.concurrency, "seed \(seed)")
            } else if running.isEmpty, let due = schedule.nextDue {
                #expect(due > now, "seed \(seed)")
                now = due
            }
            if !running.isEmpty, Bool.random(using: &generator) {
                let entry = running.remove(at: .random(in: running.indices, using: &generator))
                let succeeds = isUp && Int.random(in: 0..<10, using: &generator) > 0
                schedule.finished(entry.number, succeeds ? .delivered : .failed(retryAfter: nil), now: now)
                if succeeds { ended.append(entry.number) }
            }
            now += Self.second / 10
            let late = schedule.late(now: now)
            schedule.remove(late)
            ended += late
        }
        #expect(Set(ended).count == 80, "seed \(seed)")
    }
}
