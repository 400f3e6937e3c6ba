import HTTPSemantics
import SystemCalls

/// Detects that no byte has moved for too long.
package struct ActivityWatch {
    /// The maximum time in nanoseconds in which no byte moves; nil: no limit.
    private let limit: Int64?
    /// The time at which a byte moved last, in monotonic nanoseconds.
    package private(set) var lastActivity: Int64
    private var moved: Int64 = 0
    private var queue: Int32?
    private var queueLookedAt: Int64

    package init(limit: Duration?, now: Int64) {
        self.limit = limit?.nanoseconds
        lastActivity = now
        queueLookedAt = now
    }

    /// Notes how many bytes have moved so far.
    /// - Parameter isWaiting: whether no byte can move now for a valid reason.
    package mutating func note(moved: Int64, isWaiting: Bool, now: Int64) {
        guard isWaiting || moved != self.moved else { return }
        self.moved = moved
        lastActivity = now
    }

    /// The time at which ``isStalled(now:output:)`` has to be called again; nil: never.
    package var nextTime: Int64? { limit.map { min(lastActivity + $0, queueLookedAt + $0 / 4 + 1) } }

    /// Whether nothing has moved for too long.
    /// - Parameter output: bytes that the peer has not acknowledged. They may be the only bytes that move, because the
    ///   kernel buffers megabytes, and a slow network transfers them for minutes.
    package mutating func isStalled(now: Int64, output: () -> Int32?) -> Bool {
        guard let limit else { return false }
        if now - queueLookedAt >= limit / 4 || now - lastActivity >= limit {
            let before = queue
            queue = output()
            queueLookedAt = now
            if let queue, let before, queue != before { lastActivity = now }
        }
        return now - lastActivity >= limit
    }
}

/// Reports the progress of an exchange: at most every 100 ms while bytes move, and every 250 ms while the content of a
/// response has begun but no bytes arrive. So work that depends on the time alone is also done on a stalled connection.
package struct ProgressReports {
    private static let interval: Int64 = 100_000_000
    private static let repetition: Int64 = 250_000_000

    private var sent: Int64 = 0
    private var received: Int64 = 0
    private var lastReport: Int64 = 0

    /// The time of the next report; nil: there is nothing to report yet.
    package private(set) var nextTime: Int64?

    package init() {}

    /// Reports the counts, changed or unchanged, if a report is due.
    package mutating func report(
        sent: Int64?, received: Int64, now: Int64, to report: (TransportEvent) -> Void
    ) {
        let hasChanged = sent ?? 0 != self.sent || received != self.received
        guard hasChanged || received > 0 else {
            nextTime = nil
            return
        }
        let interval = hasChanged ? Self.interval : Self.repetition
        guard now - lastReport >= interval else {
            nextTime = lastReport + interval
            return
        }
        lastReport = now
        nextTime = received > 0 ? now + Self.repetition : nil
        if let sent, sent != self.sent { report(.sent(sent)) }
        if received > 0 { report(.received(received)) }
        self.sent = sent ?? 0
        self.received = received
    }
}

/// Limits a rate in bytes per second with a token bucket.
package struct RatePacer {
    private let rate: Double
    /// The bytes that may be moved now; below zero if more were moved than were allowed.
    private var allowance: Double
    private var filledAt: Int64

    /// - Parameters:
    ///   - rate: bytes per second; at least one.
    ///   - now: monotonic nanoseconds, as for all times of this type.
    package init(rate: Int64, now: Int64) {
        self.rate = Double(max(rate, 1))
        allowance = 0
        filledAt = now
        allowance = portion
    }

    /// The number of bytes in one step at a steady rate: the bytes of a tenth of a second.
    private var portion: Double { max(rate / 10, 1) }

    /// The bytes that may move now; 0 or less: none.
    package mutating func available(at now: Int64) -> Int64 {
        // After a delay at most two portions are available at once.
        allowance = min(allowance + Double(now - filledAt) / 1e9 * rate, 2 * portion)
        filledAt = now
        return Int64(max(allowance, -1e15))
    }

    package mutating func spend(_ count: Int) { allowance -= Double(count) }

    /// The time at which a portion is available again.
    package var nextTime: Int64 {
        let seconds = max(portion - allowance, 0) / rate
        return filledAt + Int64(min(seconds * 1e9, 1e17)) + 1
    }
}

/// The times at which the parts of an exchange began and ended, in monotonic nanoseconds; `nil` before that.
package struct ExchangeTimes {
    package let startedAt: Int64
    package var requestStart: Int64?
    package var requestEnd: Int64?
    package var responseStart: Int64?

    package init(startedAt: Int64) {
        self.startedAt = startedAt
    }

    /// The metrics of an exchange that ends now.
    /// - Parameter head: the head of the final response.
    package func metrics(method: Method, head: ClientResponseHead?, now: Int64) -> RequestMetrics {
        let elapsed: (Int64?) -> Duration? = { time in time.map { .nanoseconds($0 - startedAt) } }
        var metrics = RequestMetrics(method: method, duration: .nanoseconds(now - startedAt))
        metrics.status = head?.status
        metrics.httpVersion = head?.version
        metrics.requestStart = elapsed(requestStart)
        metrics.requestEnd = elapsed(requestEnd)
        metrics.responseStart = elapsed(responseStart)
        return metrics
    }
}
