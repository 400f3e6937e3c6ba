import Glibc

/// Readings of the system's clocks in nanoseconds (clock_gettime(2)).
public enum SystemClock {
    /// Since 1970, as precisely as the clock can tell; it jumps when the clock is set.
    public static func realtimeNanoseconds() -> Int64 { read(CLOCK_REALTIME) }

    /// Seconds since 1970.
    public static func realtimeSeconds() -> Int64 { realtimeNanoseconds() / 1_000_000_000 }

    /// Since some point in the past; never goes back.
    public static func monotonicNanoseconds() -> Int64 { read(CLOCK_MONOTONIC) }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Lets the calling thread do nothing for so many nanoseconds, or less where a signal comes.
    public static func pause(nanoseconds: Int64) {
        var time = timespec(
            tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        nanosleep(&time, nil)
    }
}
