import Glibc
import SystemCalls

/// A point of time after which something is given up.
struct Deadline: Sendable {
    /// Of the monotonic clock.
    let nanoseconds: Int64

    init(_ limit: Duration) {
        let (seconds, attoseconds) = limit.components
        nanoseconds = SystemClock.monotonicNanoseconds() + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    /// What is left in milliseconds, rounded up; never negative.
    var milliseconds: Int32 {
        Int32(clamping: max(0, (nanoseconds - SystemClock.monotonicNanoseconds() + 999_999) / 1_000_000))
    }

    var isOver: Bool { SystemClock.monotonicNanoseconds() >= nanoseconds }

    /// Repeats `attempt` until it gives something; `nil` when that does not happen in time.
    ///
    /// For states of another process that nothing announces. It looks a hundred times a second.
    static func poll<Found>(within limit: Duration, _ attempt: () throws -> Found?) rethrows -> Found? {
        let deadline = Deadline(limit)
        while true {
            if let found = try attempt() { return found }
            if deadline.isOver { return nil }
            var pause = timespec(tv_sec: 0, tv_nsec: 10_000_000)
            nanosleep(&pause, nil)
        }
    }

    /// Lets time pass, where a test is about time.
    static func pause(_ time: Duration) {
        let deadline = Deadline(time)
        while !deadline.isOver { Glibc.poll(nil, 0, deadline.milliseconds) }
    }
}
