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
