/// When received bytes are made durable while content streams, and when the client is told (draft section 4.2.2, 4.4.2).
///
/// Times are nanoseconds of a monotonic clock.
package struct AcknowledgmentPace: Sendable {
    /// Bytes after which another acknowledgment is worth its sync.
    package var step: Int64
    /// Time after which fewer bytes are worth it, too.
    package var interval: Int64
    /// The least time between two interim responses.
    package var spacing: Int64

    /// How often the client is still told, in growing distances; `nil`: as often as `spacing` lets.
    package private(set) var remainingReports: Int?

    private var requestedOffset: Int64
    private var requestedAt: Int64
    private var reportedOffset: Int64
    private var reportedAt: Int64

    package init(
        start: Int64, now: Int64, step: Int64 = 8 << 20, interval: Int64 = 1_000_000_000,
        spacing: Int64 = 250_000_000, maxReports: Int? = nil
    ) {
        remainingReports = maxReports
        self.step = step
        self.interval = interval
        self.spacing = spacing
        requestedOffset = start
        requestedAt = now
        reportedOffset = start
        reportedAt = now - spacing
    }

    /// Whether to begin to make what was received durable.
    package mutating func shouldAcknowledge(received: Int64, now: Int64) -> Bool {
        let pending = received - requestedOffset
        guard pending >= step || (pending > 0 && now - requestedAt >= interval) else { return false }
        requestedOffset = received
        requestedAt = now
        return true
    }

    private static let growth: Int64 = 8

    /// Whether to tell the client the durable offset.
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
