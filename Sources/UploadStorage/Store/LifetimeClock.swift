import SystemCalls

/// The clock for lifetimes of uploads. It is a value that converts readings of the system's clocks to seconds.
///
/// While a store is open, this clock advances with `CLOCK_BOOTTIME`. If the wall clock is set meanwhile, no upload
/// expires too early or is kept too long. When the store is opened again, the clock continues from the last durable
/// ``Mark``, plus the time that has passed since then on the wall clock, and never goes back. The clock of a new store
/// begins as seconds since 1970. Later it differs from the wall clock by the changes of the wall clock while the store
/// was open.
package struct LifetimeClock: Sendable {
    /// The time of this clock and the time of the wall clock at the same moment, both in nanoseconds since 1970.
    package struct Mark: Sendable, Hashable {
        package var time: Int64
        package var wall: Int64
    }

    /// The time in nanoseconds during which nothing expires: after a start if the downtime seems longer than the
    /// lifetime of an upload, and after a clock that several stores share was set forward.
    package static let grace: Int64 = 3600 * 1_000_000_000
    /// The minimum change of the wall clock that counts as a jump, in nanoseconds.
    static let jump: Int64 = 1_000_000_000

    /// Whether all readings come from one clock that several stores share. It needs no marks.
    private let isShared: Bool
    private let mark: Mark?
    private let lifetime: Int64
    private let start: ClockReading
    private let startTime: Int64
    /// Seconds between the mark and the start if they are more than the lifetime of an upload, because the clock may
    /// then be wrong; otherwise nil.
    let doubtfulDowntime: Int64?

    /// - Parameters:
    ///   - mark: the last mark that was saved; nil if there is none.
    ///   - lifetime: the lifetime of an upload in seconds.
    ///   - isShared: whether all readings of the wall clock come from a clock that several stores share.
    init(after mark: Mark?, at start: ClockReading, lifetime: Int64, isShared: Bool = false) {
        self.isShared = isShared
        self.mark = mark
        self.lifetime = lifetime
        self.start = start
        let downtime = mark.map { max(0, start.wall.subtractingClamped($0.wall)) } ?? 0
        startTime = mark.map { $0.time.addingClamped(downtime) } ?? start.wall
        doubtfulDowntime = downtime / 1_000_000_000 > lifetime ? downtime / 1_000_000_000 : nil
    }

    private func nanoseconds(at reading: ClockReading) -> Int64 {
        isShared ? reading.wall : startTime.addingClamped(max(0, reading.boot - start.boot))
    }

    /// Returns the time of this clock in seconds.
    func time(at reading: ClockReading) -> Int64 { nanoseconds(at: reading) / 1_000_000_000 }

    func mark(at reading: ClockReading) -> Mark { Mark(time: nanoseconds(at: reading), wall: reading.wall) }

    /// Whether the downtime seems longer than the lifetime of an upload, or a shared clock was set forward, and the
    /// clock may still be corrected. While this is true, no mark is saved.
    func isDoubtful(at reading: ClockReading) -> Bool {
        reading.boot < reading.doubtfulUntil || (doubtfulDowntime != nil && reading.boot - start.boot < Self.grace)
    }

    /// Returns the clock to use after the wall clock was set while the downtime was doubtful: the downtime is
    /// calculated again. A shared clock has no downtime.
    func corrected(at reading: ClockReading) -> LifetimeClock {
        if isShared { return self }
        let wall = reading.wall.subtractingClamped(reading.boot - start.boot)
        return LifetimeClock(after: mark, at: ClockReading(wall: wall, boot: start.boot), lifetime: lifetime)
    }

    /// The current time: uploads that expire at this time or earlier have expired. Nil if no upload expires now.
    func expiryTime(at reading: ClockReading) -> Int64? { isDoubtful(at: reading) ? nil : time(at: reading) }

    /// Returns the seconds until `expiresAt`; 0 if that time has passed.
    func remaining(until expiresAt: Int64, at reading: ClockReading) -> Int64 {
        let end =
            doubtfulDowntime == nil ? expiresAt : max(expiresAt, (startTime.addingClamped(Self.grace)) / 1_000_000_000)
        let doubt = max(0, reading.doubtfulUntil.subtractingClamped(reading.boot)) / 1_000_000_000
        return max(doubt, end - time(at: reading))
    }

    /// Returns the nanoseconds by which the wall clock was set between two readings; nil if it was not set, or if the
    /// difference is too small for a jump.
    static func jump(from last: ClockReading, to reading: ClockReading) -> Int64? {
        let difference = (reading.wall - last.wall) - (reading.boot - last.boot)
        return abs(difference) >= jump ? difference : nil
    }
}

extension Int64 {
    fileprivate func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    fileprivate func subtractingClamped(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : difference
    }
}

/// The clock for lifetimes, the last reading of the clocks, and the time of the next mark, in nanoseconds since boot.
struct ClockObservation {
    var clock: LifetimeClock
    var last: ClockReading
    var nextMark: Int64
    /// Whether rows may expire later than they should, because they were created or completed with a wrong time.
    var hasLateExpiries = false
}

extension UploadStore {
    /// The current time in seconds of the clock for lifetimes. The creation and the expiry of uploads are times of this
    /// clock. It begins as seconds since 1970, and does not jump when the wall clock is set.
    package var time: Int64 { context.time }

    var lifetimeClock: LifetimeClock { context.clockObservation.withLock { $0.clock } }

    /// Returns the seconds until `expiresAt`; 0 if that time has passed.
    package func remaining(until expiresAt: Int64) -> Int64 {
        lifetimeClock.remaining(until: expiresAt, at: context.configuration.clock())
    }

    /// Seconds for which the store seems to have been closed, if that is longer than the lifetime of an upload;
    /// otherwise nil. Nothing then expires within the first hour, because the clock may be wrong.
    package var doubtfulDowntime: Int64? { lifetimeClock.doubtfulDowntime }

    /// The current time: uploads that expire at this time or earlier have expired. Nil if no upload expires now.
    var expiryTime: Int64? { lifetimeClock.expiryTime(at: context.configuration.clock()) }

    /// Nanoseconds from one mark to the next. The interval is short, so that after a crash the downtime does not seem
    /// much longer than it was.
    private var markInterval: Int64 { max(1, min(60, configuration.lifetime.wholeSeconds / 8)) * 1_000_000_000 }

    /// Checks whether the wall clock has jumped, and saves a mark if it has, or if the next mark is due.
    /// - Returns: seconds by which the clock jumped. Jumps of a shared clock are reported by its owner.
    func observeClock() -> Int64? {
        let reading = configuration.clock()
        let (jump, isDue) = context.clockObservation.withLock { observation in
            let jump = LifetimeClock.jump(from: observation.last, to: reading)
            let isDue = jump != nil || reading.boot >= observation.nextMark
            if jump != nil && observation.clock.isDoubtful(at: reading) {
                observation.clock = observation.clock.corrected(at: reading)
                observation.hasLateExpiries = true
            }
            observation.last = reading
            if isDue { observation.nextMark = reading.boot + markInterval }
            return (jump, isDue)
        }
        if isDue { saveMark(at: reading) }
        if catalog.isShared { return nil }
        return jump.map { ($0.magnitude < UInt64(Int64.max) ? $0 : Int64.max) / 1_000_000_000 }
    }

    /// Saves a mark. If this fails, the next start uses an older mark, and counts the time since that mark as downtime.
    func saveMark(at reading: ClockReading) {
        let lifetimeClock = lifetimeClock
        // The next start must be able to calculate the downtime again, from the older mark.
        if lifetimeClock.isDoubtful(at: reading) { return }
        _ = try? catalog.commit(.recordTime(lifetimeClock.mark(at: reading)))
    }
}
