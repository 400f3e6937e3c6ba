import ResumableUpload
import TestSupport
import Testing

@Suite struct AcknowledgmentPaceTests {
    private static let second: Int64 = 1_000_000_000

    @Test(
        "INT-07: a minimum interval separates interim responses, even if content arrives fast",
        arguments: 0..<50 as Range<UInt64>)
    func bounded(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var now = Int64.random(in: 0...(.max / 2), using: &random)
        let begin = now
        var pace = AcknowledgmentPace(start: 0, now: now)
        var durable: Int64 = 0
        var reports: [(offset: Int64, at: Int64)] = []
        for _ in 0..<5000 {
            now += Int64.random(in: 0...3_000_000, using: &random)
            durable += Int64.random(in: 0...1_000_000, using: &random)
            if pace.shouldReport(durable: durable, now: now) { reports.append((durable, now)) }
        }
        for (earlier, later) in zip(reports, reports.dropFirst()) {
            #expect(later.at - earlier.at >= pace.spacing, "seed \(seed)")
            #expect(later.offset > earlier.offset, "seed \(seed)")
        }
        #expect(Int64(reports.count) <= (now - begin) / pace.spacing + 1, "seed \(seed)")
        #expect(reports.count > 1, "seed \(seed)")
    }

    @Test("INT-07: each offset is reported once, and the initial offset is never reported")
    func onlyNews() {
        var pace = AcknowledgmentPace(start: 100, now: 0)
        let reports = [(100, 1), (101, 1), (101, 9), (50, 10)].map { offset, seconds in
            pace.shouldReport(durable: offset, now: seconds * Self.second)
        }
        #expect(reports == [false, true, false, false])
    }

    @Test("CRE-21 APP-12: the first new offset is reported immediately")
    func first() {
        var pace = AcknowledgmentPace(start: 0, now: 5)
        let reports = [(1, 5), (2, 6), (2, 5 + pace.spacing)].map { pace.shouldReport(durable: $0, now: $1) }
        #expect(reports == [true, false, true])
    }

    @Test("INT-07: the number of interim responses is limited, and the intervals between them increase")
    func few() {
        var pace = AcknowledgmentPace(start: 0, now: 0, spacing: 10, maxReports: 3)
        let reports = (1...2000 as ClosedRange<Int64>).filter { pace.shouldReport(durable: $0, now: $0) }
        #expect(reports == [1, 81, 721])
    }

    @Test("Received bytes are made durable after a number of bytes or after an interval")
    func durability() {
        var pace = AcknowledgmentPace(start: 1000, now: 0, step: 100, interval: 10, smallPiece: 1)
        let begun = [(1000, 50), (1099, 9), (1100, 9), (1101, 18), (1101, 19), (1101, 90)].map {
            pace.shouldAcknowledge(received: $0, now: $1)
        }
        #expect(begun == [false, false, true, false, true, false])
    }

    /// The seconds at which bytes are made durable, if the same number of bytes arrives in every millisecond.
    private func seconds(bytesPerMillisecond: Int64, until end: Int64) -> [Int64] {
        var pace = AcknowledgmentPace(start: 0, now: 0)
        return (1...end * 1000).filter {
            pace.shouldAcknowledge(received: $0 * bytesPerMillisecond, now: $0 * 1_000_000)
        }.map { $0 / 1000 }
    }

    @Test("A sender of 100 KB per second causes one synchronization per second")
    func moderateSender() {
        #expect(seconds(bytesPerMillisecond: 100, until: 10) == Array(1...10))
    }

    @Test("The intervals between synchronizations double for a sender of 1 KB per second, up to 16 seconds")
    func slowSender() {
        #expect(seconds(bytesPerMillisecond: 1, until: 60) == [1, 3, 7, 15, 31, 47])
    }

    @Test("At every rate, a crash loses less than 64 KiB, or less than the bytes of one second")
    func boundedLoss() {
        for rate in [1, 5, 20, 60, 70] as [Int64] {
            var pace = AcknowledgmentPace(start: 0, now: 0)
            var requested: Int64 = 0
            for millisecond in 1...100_000 as ClosedRange<Int64> {
                if pace.shouldAcknowledge(received: millisecond * rate, now: millisecond * 1_000_000) {
                    requested = millisecond * rate
                }
                #expect(millisecond * rate - requested < max(64 << 10, 1000 * rate), "\(rate) bytes in a millisecond")
            }
        }
    }

    @Test("The interval is one second again after more bytes have arrived")
    func fasterAgain() {
        var pace = AcknowledgmentPace(start: 0, now: 0)
        let received: [(Int64, Int64)] = [(1, 1), (2, 2), (2, 3), (100_000, 4), (100_001, 5)]
        let decisions = received.map { pace.shouldAcknowledge(received: $0, now: $1 * Self.second) }
        #expect(decisions == [true, false, true, true, true])
    }
}
