import Glibc

/// Readings of the system's clocks in nanoseconds (clock_gettime(2)).
package enum SystemClock {
    /// Since 1970, as precisely as the clock can tell; it jumps when the clock is set.
    package static func realtimeNanoseconds() -> Int64 { read(CLOCK_REALTIME) }

    /// Seconds since 1970.
    package static func realtimeSeconds() -> Int64 { realtimeNanoseconds() / 1_000_000_000 }

    /// Since some point in the past; never goes back.
    package static func monotonicNanoseconds() -> Int64 { read(CLOCK_MONOTONIC) }

    /// Since the system was started, suspended times included; neither set nor slowed (`CLOCK_BOOTTIME`).
    package static func bootNanoseconds() -> Int64 { read(CLOCK_BOOTTIME) }

    /// Wall clock and time since boot, as of the same moment.
    package static func reading() -> ClockReading {
        while true {
            let before = bootNanoseconds()
            let wall = realtimeNanoseconds()
            let after = bootNanoseconds()
            // A thread that was stopped in between would report a difference that is none of the clocks'.
            if after - before < 50_000_000 { return ClockReading(wall: wall, boot: before) }
        }
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Lets the calling thread do nothing for so many nanoseconds, or less where a signal comes.
    package static func pause(nanoseconds: Int64) {
        var time = timespec(
            tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        nanosleep(&time, nil)
    }
}

/// What two clocks show at one moment, in nanoseconds.
package struct ClockReading: Sendable, Hashable {
    /// Since 1970; it jumps when the clock is set.
    package var wall: Int64
    /// Since the system was started; it never jumps.
    package var boot: Int64

    package init(wall: Int64, boot: Int64) {
        self.wall = wall
        self.boot = boot
    }
}
