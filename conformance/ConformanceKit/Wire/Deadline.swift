import SystemCalls

/// The time after which an operation is aborted.
package struct Deadline: Sendable, Comparable {
    /// The time, in nanoseconds of the monotonic clock.
    package let nanoseconds: Int64

    package init(in limit: Duration) {
        nanoseconds = SystemClock.monotonicNanoseconds() + limit.nanoseconds
    }

    package var isOver: Bool { SystemClock.monotonicNanoseconds() >= nanoseconds }

    /// The remaining milliseconds, rounded up; never negative.
    package var milliseconds: Int32 {
        Int32(clamping: max(0, (nanoseconds - SystemClock.monotonicNanoseconds() + 999_999) / 1_000_000))
    }

    /// Waits for the given duration.
    package static func pause(_ time: Duration) {
        // The wait for a condition that is never true ends at the deadline.
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
