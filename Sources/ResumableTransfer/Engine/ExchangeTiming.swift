/// Detects that no byte has moved for too long.
struct ActivityWatch {
    /// For how long nothing may move, in nanoseconds; nil: for ever.
    private let limit: Int64?
    /// When something moved last, in monotonic nanoseconds.
    private(set) var lastActivity: Int64
    private var moved: Int64 = 0
    private var queue: Int32?
    private var queueLookedAt: Int64

    init(limit: Duration?, now: Int64) {
        self.limit = limit?.nanoseconds
        lastActivity = now
        queueLookedAt = now
    }

    /// Notes how many bytes have moved so far.
    /// - Parameter isWaiting: nothing may move now, and that is as it should be.
    mutating func note(moved: Int64, isWaiting: Bool, now: Int64) {
        guard isWaiting || moved != self.moved else { return }
        self.moved = moved
        lastActivity = now
    }

    /// When it is over, or what to do until then has to be done; nil: never.
    var nextTime: Int64? { limit.map { min(lastActivity + $0, queueLookedAt + $0 / 4 + 1) } }

    /// Whether nothing has moved for too long.
    /// - Parameter output: bytes that the peer has not acknowledged. They may be all that moves: the kernel takes in
    ///   megabytes at once, and a slow network carries them for minutes.
    mutating func isStalled(now: Int64, output: () -> Int32?) -> Bool {
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

extension Duration {
    /// In nanoseconds, rounded down; at most a century.
    var nanoseconds: Int64 {
        let century = 3_155_760_000.0 * 1e9
        return Int64(min(max(self / .nanoseconds(1), 0), century))
    }
}

/// Reports the progress of an exchange: at most every 100 ms while bytes move, and every 250 ms while none of a response's content
/// that has begun arrives. So what follows from the time alone is done also on a connection that has stalled.
struct ProgressReports {
    private static let interval: Int64 = 100_000_000
    private static let repetition: Int64 = 250_000_000

    private var sent: Int64 = 0
    private var received: Int64 = 0
    private var lastReport: Int64 = 0

    /// The time of the next report; nil: there is nothing to report yet.
    private(set) var nextTime: Int64?

    /// Reports what has changed, or the same again, if it is time.
    mutating func report(sent: Int64?, received: Int64, now: Int64, to exchange: TransportExchange) {
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
        if let sent, sent != self.sent { exchange.report(.sent(sent)) }
        if received > 0 { exchange.report(.received(received)) }
        self.sent = sent ?? 0
        self.received = received
    }
}

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
