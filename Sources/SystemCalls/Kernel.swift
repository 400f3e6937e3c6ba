import Glibc

/// Readings of the system's clocks in nanoseconds (clock_gettime(2)).
package enum SystemClock {
    /// Nanoseconds since 1970; they jump when the clock is set.
    package static func realtimeNanoseconds() -> Int64 { read(CLOCK_REALTIME) }

    /// Seconds since 1970.
    package static func realtimeSeconds() -> Int64 { realtimeNanoseconds() / 1_000_000_000 }

    /// Nanoseconds since an arbitrary point in the past; they never go back.
    package static func monotonicNanoseconds() -> Int64 { read(CLOCK_MONOTONIC) }

    /// Nanoseconds since the system was started, including the time it was suspended (`CLOCK_BOOTTIME`).
    package static func bootNanoseconds() -> Int64 { read(CLOCK_BOOTTIME) }

    /// The wall clock and the time since boot at the same moment.
    package static func reading() -> ClockReading {
        while true {
            let before = bootNanoseconds()
            let wall = realtimeNanoseconds()
            let after = bootNanoseconds()
            // If the thread was suspended in between, the two times are not of the same moment.
            if after - before < 50_000_000 { return ClockReading(wall: wall, boot: before) }
        }
    }

    /// Returns the end of a wait that begins now, in monotonic nanoseconds.
    package static func deadline(in wait: Duration) -> Int64 { monotonicNanoseconds() + wait.nanoseconds }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Suspends the calling thread for `nanoseconds`, or until a signal arrives.
    package static func pause(nanoseconds: Int64) {
        var time = timespec(
            tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        nanosleep(&time, nil)
    }
}

extension Duration {
    /// The nanoseconds of a wait: at least 0 and at most 10^17, which is three years.
    package var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        if self <= .zero { return 0 }
        return seconds >= 100_000_000 ? 100_000_000_000_000_000 : seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    /// The seconds, rounded up, and limited to about a million years.
    package var wholeSeconds: Int64 {
        let (seconds, attoseconds) = components
        return max(-30_000_000_000_000, min(seconds + (attoseconds > 0 ? 1 : 0), 30_000_000_000_000))
    }
}

/// The times of two clocks at one moment, in nanoseconds.
package struct ClockReading: Sendable, Hashable {
    /// Nanoseconds since 1970; they jump when the clock is set.
    package var wall: Int64
    /// Nanoseconds since the system was started; they never jump.
    package var boot: Int64
    /// The value of `boot` until which `wall` may be wrong, because it is that of a clock that was set forward.
    package var doubtfulUntil = Int64.min

    package init(wall: Int64, boot: Int64) {
        self.wall = wall
        self.boot = boot
    }
}

/// Unpredictable numbers from the kernel, which are suitable for secrets. Many numbers are read with one call
/// (getentropy(3)).
///
/// A child process that is forked without executing a program would get the same numbers; no process of this package
/// does that.
package struct KernelRandom: RandomNumberGenerator, Sendable {
    private struct Supply {
        /// The bytes that one call of getentropy(3) can return.
        private var numbers = [UInt64](repeating: 0, count: 32)
        private var count = 0

        mutating func next() -> UInt64 {
            if count == 0 {
                numbers.withUnsafeMutableBytes { bytes in
                    // Only a kernel without getrandom(2) makes this call fail.
                    precondition(getentropy(bytes.baseAddress, bytes.count) == 0, "getentropy: \(Errno.current)")
                }
                count = numbers.count
            }
            count -= 1
            // The returned number can become a secret, so it is erased here.
            defer { numbers[count] = 0 }
            return numbers[count]
        }
    }

    private static let supply = Monitor(Supply())

    package init() {}

    package func next() -> UInt64 { Self.supply.withLock { $0.next() } }
}

/// The name of this machine in its network (uname(2)).
package enum SystemName {
    package static var current: String {
        var names = utsname()
        guard uname(&names) == 0 else { return "" }
        return withUnsafeBytes(of: &names.nodename) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}

/// The version of the kernel (uname(2)).
package struct SystemRelease: Sendable, Hashable, Comparable {
    package var major: Int
    package var minor: Int

    package init(major: Int, minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// Parses a text such as "6.1.0-28-amd64". Numbers that are missing are 0.
    init(parsing text: String) {
        let parts = text.split(separator: ".", maxSplits: 2).map { Int($0.prefix { $0.isNumber }) ?? 0 }
        self.init(major: parts.first ?? 0, minor: parts.dropFirst().first ?? 0)
    }

    package static let current: SystemRelease = {
        var names = utsname()
        guard uname(&names) == 0 else { return SystemRelease(major: 0, minor: 0) }
        let text = withUnsafeBytes(of: &names.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return SystemRelease(parsing: text)
    }()

    package static func < (left: SystemRelease, right: SystemRelease) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }
}
