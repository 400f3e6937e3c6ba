import SystemCalls

/// A point of time after which something is given up.
package struct Deadline: Sendable, Comparable {
    /// Of the monotonic clock.
    package let nanoseconds: Int64

    package init(in limit: Duration) {
        nanoseconds = SystemClock.monotonicNanoseconds() + limit.nanoseconds
    }

    package var isOver: Bool { SystemClock.monotonicNanoseconds() >= nanoseconds }

    /// The remaining milliseconds, rounded up; never negative.
    package var milliseconds: Int32 {
        Int32(clamping: max(0, (nanoseconds - SystemClock.monotonicNanoseconds() + 999_999) / 1_000_000))
    }

    /// Lets time pass, where a case is about time.
    package static func pause(_ time: Duration) {
        // A lock that is never held, and a condition that is never true.
        _ = Monitor(()).wait(until: Deadline(in: time).nanoseconds) { _ -> Void? in nil }
    }

    package static func < (left: Deadline, right: Deadline) -> Bool { left.nanoseconds < right.nanoseconds }
}

extension Duration {
    var nanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }

    var milliseconds: Int64 { nanoseconds / 1_000_000 }
}
