import Testing

@testable import TransferServer

@Suite("Minimum rate")
struct RateWindowTests {
    private static let second: Int64 = 1_000_000_000

    /// The second in which a peer that transfers `bytes` in each second is detected as too slow.
    private func secondsUntilTooSlow(_ bytes: (Int64) -> Int64, minimum: Int64) -> Int64? {
        var window = RateWindow()
        var total: Int64 = 0
        return (0..<60).first { second in
            defer { total += bytes(second) }
            return window.isTooSlow(bytes: total, nanoseconds: second * Self.second, minimum: minimum, length: 10)
        }
    }

    @Test("the minimum rate is an average over complete windows")
    func average() {
        #expect(secondsUntilTooSlow({ _ in 100 }, minimum: 100) == nil)
        #expect(secondsUntilTooSlow({ _ in 99 }, minimum: 100) == 10)
        #expect(secondsUntilTooSlow({ _ in 0 }, minimum: 1) == 10)
        // The bytes of a burst are counted only in the window in which they were transferred.
        #expect(secondsUntilTooSlow({ $0 == 9 ? 1000 : 0 }, minimum: 100) == 20)
        #expect(secondsUntilTooSlow({ $0 % 10 == 5 ? 1000 : 0 }, minimum: 100) == nil)
    }

    @Test("time in which the peer could not transfer bytes is not counted")
    func waiting() {
        var window = RateWindow()
        for _ in 0..<100 {
            let isTooSlow = window.isTooSlow(bytes: 0, nanoseconds: 9 * Self.second, minimum: 1000, length: 10)
            #expect(!isTooSlow)
        }
    }

    @Test("a minimum rate that no peer can reach does not overflow")
    func overflow() {
        var window = RateWindow()
        _ = window.isTooSlow(bytes: 0, nanoseconds: 0, minimum: .max, length: 10)
        let isTooSlow = window.isTooSlow(bytes: .max, nanoseconds: 10 * Self.second, minimum: .max, length: 10)
        #expect(isTooSlow)
    }
}
