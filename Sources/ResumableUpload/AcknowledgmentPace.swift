/// Decides when received bytes are made durable during an upload, and when the offset is reported to the client (draft
/// sections 4.2.2 and 4.4.2).
///
/// Times are nanoseconds of a monotonic clock.
///
/// Each decision to make bytes durable costs a change of the catalog. So the intervals grow while an upload is very slow:
/// a crash can then lose the bytes of more than one `interval`, but fewer than `smallPiece` bytes.
package struct AcknowledgmentPace: Sendable {
    /// The number of received bytes after which they are made durable.
    package var step: Int64
    /// The time after which received bytes are made durable even if they are fewer than `step`. For fewer than
    /// `smallPiece` bytes, this time doubles with each such acknowledgment, up to 16 times `interval`.
    package var interval: Int64
    package var smallPiece: Int64
    /// The minimum time between two interim responses.
    package var spacing: Int64

    /// The number of offsets that may still be reported, at increasing intervals; `nil`: as many as `spacing` allows.
    package private(set) var remainingReports: Int?

    /// The current time after which fewer than `smallPiece` received bytes are made durable.
    private var smallInterval: Int64
    private static let maxDoublings: Int64 = 4

    private var requestedOffset: Int64
    private var requestedAt: Int64
    private var reportedOffset: Int64
    private var reportedAt: Int64

    package init(
        start: Int64, now: Int64, step: Int64 = 8 << 20, interval: Int64 = 1_000_000_000, smallPiece: Int64 = 64 << 10,
        spacing: Int64 = 250_000_000, maxReports: Int? = nil
    ) {
        remainingReports = maxReports
        self.step = step
        self.interval = interval
        self.smallPiece = smallPiece
        smallInterval = interval
        self.spacing = spacing
        requestedOffset = start
        requestedAt = now
        reportedOffset = start
        reportedAt = now - spacing
    }

    /// Whether to make the received bytes durable now.
    package mutating func shouldAcknowledge(received: Int64, now: Int64) -> Bool {
        let (pending, elapsed) = (received - requestedOffset, now - requestedAt)
        guard pending >= step || (pending > 0 && elapsed >= (pending < smallPiece ? smallInterval : interval)) else {
            return false
        }
        smallInterval = pending < smallPiece ? min(2 * smallInterval, interval << Self.maxDoublings) : interval
        requestedOffset = received
        requestedAt = now
        return true
    }

    private static let growth: Int64 = 8

    /// Whether to report the durable offset to the client now.
    package mutating func shouldReport(durable: Int64, now: Int64) -> Bool {
        guard durable > reportedOffset, now - reportedAt >= spacing, remainingReports != 0 else { return false }
        reportedOffset = durable
        reportedAt = now
        if let remainingReports {
            self.remainingReports = remainingReports - 1
            spacing *= Self.growth
        }
        return true
    }
}
