import SystemCalls

/// A point of time after which something is given up.
struct Deadline: Sendable, Comparable {
    /// Of the monotonic clock.
    let nanoseconds: Int64

    init(in limit: Duration) {
        nanoseconds = SystemClock.monotonicNanoseconds() + limit.nanoseconds
    }

    var isOver: Bool { SystemClock.monotonicNanoseconds() >= nanoseconds }

    /// Lets time pass, where a case is about time.
    static func pause(_ time: Duration) {
        // A lock that nobody takes, and a condition that never holds.
        _ = Monitor(()).wait(until: Deadline(in: time).nanoseconds) { _ -> Void? in nil }
    }

    static func < (left: Deadline, right: Deadline) -> Bool { left.nanoseconds < right.nanoseconds }
}

extension Duration {
    var nanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }

    var milliseconds: Int64 { nanoseconds / 1_000_000 }
}
