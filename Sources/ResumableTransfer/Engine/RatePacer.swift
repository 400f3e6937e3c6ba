/// Spreads bytes over time so that there are so many a second: a bucket that fills steadily.
struct RatePacer {
    private let rate: Double
    /// The bytes that may be moved now; below zero if more were moved than were allowed.
    private var allowance: Double
    private var filledAt: Int64

    /// - Parameters:
    ///   - rate: bytes a second; at least one.
    ///   - now: monotonic nanoseconds, as everywhere here.
    init(rate: Int64, now: Int64) {
        self.rate = Double(max(rate, 1))
        allowance = 0
        filledAt = now
        allowance = portion
    }

    /// What moves at a time when it goes steadily: a tenth of a second's worth.
    private var portion: Double { max(rate / 10, 1) }

    /// The bytes that may move now; 0 or less: none.
    mutating func available(at now: Int64) -> Int64 {
        // A transfer that was delayed may catch up by two portions.
        allowance = min(allowance + Double(now - filledAt) / 1e9 * rate, 2 * portion)
        filledAt = now
        return Int64(max(allowance, -1e15))
    }

    mutating func spend(_ count: Int) { allowance -= Double(count) }

    /// When there will be a portion again.
    var nextTime: Int64 {
        let seconds = max(portion - allowance, 0) / rate
        return filledAt + Int64(min(seconds * 1e9, 1e17)) + 1
    }
}
