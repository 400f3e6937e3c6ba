import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

@Suite struct LifetimeClockTests {
    private static let life: Duration = .seconds(1000)
    private static let second: Int64 = 1_000_000_000
    private static let day: Int64 = 86_400 * second
    private static let start: Int64 = 1_700_000_000 * second

    @Test(
        "steps of the wall clock do not change the time, which includes the running time and the downtime since a mark")
    func generatedSteps() {
        for seed in UInt64(1)...500 {
            var generator = SeededGenerator(seed: seed)
            var reading = ClockReading(wall: Self.start, boot: Int64.random(in: 0...Self.day, using: &generator))
            let lifetime: Int64 = 7 * 86_400
            var clock = LifetimeClock(after: nil, at: reading, lifetime: lifetime)
            var mark = clock.mark(at: reading)
            // The time that actually passed.
            var time = Self.start
            for _ in 0..<60 {
                let before = clock.time(at: reading)
                #expect(before == time / Self.second, "seed \(seed)")
                switch Int.random(in: 0..<4, using: &generator) {
                case 0:
                    // The wall clock is set, and then a mark is saved.
                    let last = reading
                    reading.wall += Int64.random(in: -400 * Self.day...400 * Self.day, using: &generator)
                    #expect(clock.time(at: reading) == before, "seed \(seed)")
                    let jump = LifetimeClock.jump(from: last, to: reading)
                    #expect(
                        jump == nil ? abs(reading.wall - last.wall) < Self.second : jump == reading.wall - last.wall)
                    mark = clock.mark(at: reading)
                case 1:
                    // The store is reopened after a downtime that both clocks count, or after a reboot, that only the
                    // wall clock counts.
                    let downtime = Int64.random(in: 0...Self.day, using: &generator)
                    let isReboot = Bool.random(using: &generator)
                    reading.wall += downtime
                    reading.boot =
                        isReboot ? Int64.random(in: 0...Self.second, using: &generator) : reading.boot + downtime
                    clock = LifetimeClock(after: mark, at: reading, lifetime: lifetime)
                    time += downtime
                    #expect(clock.doubtfulDowntime == nil, "seed \(seed)")
                    mark = clock.mark(at: reading)
                default:
                    let passed = Int64.random(in: 0...3600 * Self.second, using: &generator)
                    reading.wall += passed
                    reading.boot += passed
                    time += passed
                }
                #expect(clock.expiryTime(at: reading) == clock.time(at: reading), "seed \(seed)")
            }
        }
    }

    @Test("after a downtime that seems longer than a lifetime nothing expires for an hour, then everything due expires")
    func grace() {
        let first = LifetimeClock(after: nil, at: ClockReading(wall: Self.start, boot: 0), lifetime: 100)
        let mark = first.mark(at: ClockReading(wall: Self.start, boot: 0))
        let reading = ClockReading(wall: Self.start + 101 * Self.second, boot: 5)
        let clock = LifetimeClock(after: mark, at: reading, lifetime: 100)
        #expect(clock.doubtfulDowntime == 101)
        let expiresAt = 1_700_000_100 as Int64
        #expect(clock.expiryTime(at: reading) == nil)
        #expect(clock.remaining(until: expiresAt, at: reading) == 3600)
        #expect(clock.remaining(until: expiresAt + 86_400, at: reading) == 86_399)
        let later = ClockReading(wall: 0, boot: reading.boot + LifetimeClock.grace)
        let end: Int64 = 1_700_000_101 + 3600
        #expect(clock.expiryTime(at: later) == end)
        #expect(clock.remaining(until: expiresAt, at: later) == 0)
        // A downtime of exactly one lifetime is not longer than a lifetime.
        let exact = ClockReading(wall: Self.start + 100 * Self.second, boot: 5)
        #expect(LifetimeClock(after: mark, at: exact, lifetime: 100).doubtfulDowntime == nil)
    }

    @Test("if the wall clock was set back while the store was closed, the time continues from the mark")
    func backward() {
        let mark = LifetimeClock.Mark(time: Self.start, wall: Self.start)
        let reading = ClockReading(wall: 0, boot: 0)
        let clock = LifetimeClock(after: mark, at: reading, lifetime: 100)
        #expect(clock.time(at: reading) == Self.start / Self.second)
        #expect(clock.time(at: ClockReading(wall: 0, boot: 5 * Self.second)) == Self.start / Self.second + 5)
    }

    @Test(
        "a clock jump while the store is open expires no upload early, and prevents no expiry",
        arguments: StoreKind.embedded
    )
    func store(_ kind: StoreKind) throws {
        for step: Int64 in [2_592_000, -2_592_000] {
            let fixture = try StoreFixture(kind) { $0.lifetime = .seconds(1000) }
            let expiresAt = fixture.store.time + 1000
            let id = try #require(try fixture.store.create(.testing(expiresAt: expiresAt)).id)
            fixture.step(step)
            let report = fixture.store.sweepPart()
            #expect(report.clockJump == step && report.expired == 0)
            #expect(fixture.store.sweepPart().clockJump == nil)
            fixture.advance(999)
            #expect(fixture.store.sweepPart().expired == 0)
            #expect(fixture.store.remaining(until: expiresAt) == 1)
            // The corrected time is kept over a restart.
            try fixture.reopen { $0.lifetime = .seconds(1000) }
            #expect(fixture.store.remaining(until: expiresAt) == 1 && fixture.store.doubtfulDowntime == nil)
            try fixture.store.lease(id).release()
            fixture.advance(1)
            #expect(throws: StoreError.self) { try fixture.store.lease(id) }
            #expect(fixture.store.sweepPart().expired == 1)
        }
    }

    @Test("a wrong clock at the start that is corrected within an hour has no effect", arguments: StoreKind.embedded)
    func correction(_ kind: StoreKind) throws {
        for restarts in [false, true] {
            let fixture = try StoreFixture(kind) {
                $0.lifetime = .seconds(1000)
                $0.keepCompleted = .seconds(1000)
            }
            let expiresAt = fixture.store.time + 900
            let id = try #require(try fixture.store.create(.testing(expiresAt: expiresAt)).id)
            try fixture.reopen(
                after: { fixture.step(10_000_000) }, { ($0.lifetime, $0.keepCompleted) = (Self.life, Self.life) })
            #expect(fixture.store.sweepPart().expired == 0)
            let later = try #require(try fixture.store.create(.testing(expiresAt: fixture.store.time + 1000)).id)
            fixture.advance(100)
            #expect(fixture.store.sweepPart().expired == 0)
            if restarts {
                try fixture.reopen(after: { fixture.step(-10_000_000) }, { $0.lifetime = .seconds(1000) })
            } else {
                fixture.step(-10_000_000)
                #expect(fixture.store.sweepPart().clockJump == -10_000_000)
            }
            #expect(fixture.store.doubtfulDowntime == nil)
            #expect(fixture.store.remaining(until: expiresAt) == 800)
            try fixture.store.lease(id).release()
            fixture.advance(800)
            #expect(fixture.store.sweepPart().expired == 1)
            // Uploads that were created with the wrong time expire no later than others.
            try fixture.store.lease(later).release()
            if !restarts {
                fixture.advance(200)
                #expect(fixture.store.sweepPart().expired == 1)
            }
        }
    }

    @Test(
        "after a wrong clock lifetimes are limited in batches, and a failed batch is repeated",
        arguments: StoreKind.embedded)
    func limits(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind) { ($0.lifetime, $0.keepCompleted) = (Self.life, Self.life) }
        try fixture.reopen(
            after: { fixture.step(10_000_000) }, { ($0.lifetime, $0.keepCompleted) = (Self.life, Self.life) })
        let ids = try (0..<5 * UploadStore.expiryBatch).map { number in
            let lease = try fixture.store.create(.testing(expiresAt: fixture.store.time + 1000))
            defer { lease.release() }
            if number % 2 == 0 { try lease.complete(with: Response(status: 200)) }
            return try #require(lease.id)
        }
        fixture.step(-10_000_000)
        var late: (id: UploadID?, expiresAt: Int64)?
        if kind == .memory {
            fixture.plan.fail(.commit, with: .inputOutput)
            #expect(!fixture.store.sweepPart().failures.isEmpty)
            fixture.plan.fail(.commit, with: nil)
            // Uploads that are created with the correct time keep their lifetime.
            fixture.advance(50)
            let expiresAt = fixture.store.time + 1000
            late = (try fixture.store.create(.testing(expiresAt: expiresAt)).id, expiresAt)
        }
        let before = fixture.store.catalog.statistics.transactions
        #expect(fixture.store.sweepPart().failures == [])
        // One transaction for the removal of finished uploads, and one for each batch.
        #expect(fixture.store.catalog.statistics.transactions - before >= 4)
        let limit = fixture.store.time + 1000
        for id in ids { #expect(try #require(try fixture.store.catalog.row(id)?.expiresAt) <= limit) }
        if let id = late?.id { #expect(try fixture.store.catalog.row(id)?.expiresAt == late?.expiresAt) }
        let after = fixture.store.catalog.statistics.transactions
        _ = fixture.store.sweepPart()
        #expect(fixture.store.catalog.statistics.transactions - after <= 1)
    }

    @Test(
        "downtime is counted, but after a downtime that seems longer than a lifetime, uploads remain for an hour",
        arguments: StoreKind.embedded)
    func downtime(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind) { $0.lifetime = .seconds(1000) }
        let expiresAt = fixture.store.time + 1000
        let id = try #require(try fixture.store.create(.testing(expiresAt: expiresAt)).id)
        // Time passes while the store is closed.
        try fixture.reopen(after: { fixture.advance(600) }, { $0.lifetime = .seconds(1000) })
        #expect(fixture.store.remaining(until: expiresAt) == 400)
        try fixture.reopen(after: { fixture.step(1001) }, { $0.lifetime = .seconds(1000) })
        #expect(fixture.store.doubtfulDowntime == 1001)
        #expect(fixture.store.sweepPart().expired == 0)
        try fixture.store.lease(id).release()
        #expect(fixture.store.remaining(until: expiresAt) == 3600)
        fixture.advance(3600)
        #expect(fixture.store.sweepPart().expired == 1)
    }
}
