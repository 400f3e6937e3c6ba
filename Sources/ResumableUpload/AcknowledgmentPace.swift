/// Decides when received bytes are made durable during an upload, and when the offset is reported to the client (draft
/// sections 4.2.2 and 4.4.2).
///
/// Times are nanoseconds of a monotonic clock.
package struct AcknowledgmentPace: Sendable {
    /// The number of received bytes after which they are made durable.
    package var step: Int64
    /// The time after which received bytes are made durable even if they are fewer than `step`.
    package var interval: Int64
    /// The minimum time between two interim responses.
    package var spacing: Int64

    /// The number of offsets that may still be reported, at increasing intervals; `nil`: as many as `spacing` allows.
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

    /// Whether to make the received bytes durable now.
    package mutating func shouldAcknowledge(received: Int64, now: Int64) -> Bool {
        let pending = received - requestedOffset
        guard pending >= step || (pending > 0 && now - requestedAt >= interval) else { return false }
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
