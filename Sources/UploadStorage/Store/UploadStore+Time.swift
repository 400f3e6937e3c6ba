import SystemCalls

/// The clock of lifetimes, what was read last, and when the next mark is due, by the time since boot.
struct ClockObservation {
    var clock: LifetimeClock
    var last: ClockReading
    var nextMark: Int64
    /// Whether rows may expire later than they should, because they were created or completed by a wrong time.
    var hasLateExpiries = false
}

extension UploadStore {
    /// The current time in seconds for the evaluation of lifetimes: creation and expiry of uploads are times of this clock. It begins as seconds since
    /// 1970, and continues without jumps when the wall clock is set.
    package var time: Int64 { context.time }

    var lifetimeClock: LifetimeClock { context.clockObservation.withLock { $0.clock } }

    /// Returns the seconds until `expiresAt`; 0 if that time has passed.
    package func remaining(until expiresAt: Int64) -> Int64 {
        lifetimeClock.remaining(until: expiresAt, at: configuration.clock())
    }

    /// Seconds for which the store seems to have been closed, if that is longer than an upload lives: then nothing expires
    /// within the first hour, as the clock may be wrong.
    package var doubtfulDowntime: Int64? { lifetimeClock.doubtfulDowntime }

    /// The time until which uploads have expired; nil if none have.
    var expiryTime: Int64? { lifetimeClock.expiryTime(at: configuration.clock()) }

    /// Nanoseconds from one mark to the next: short enough that a crash does not let the downtime seem much longer than it
    /// was.
    private var markInterval: Int64 { max(1, min(60, configuration.lifetime / 8)) * 1_000_000_000 }

    /// Looks for a jump of the wall clock, and saves a mark if there was one, or if it is time.
    /// - Returns: seconds by which the clock jumped.
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
        return jump.map { ($0.magnitude < UInt64(Int64.max) ? $0 : Int64.max) / 1_000_000_000 }
    }

    /// If this fails, an older mark counts, and the time since then for downtime.
    func saveMark(at reading: ClockReading) {
        let lifetimeClock = lifetimeClock
        // The next start has to be able to count the downtime again.
        if lifetimeClock.isDoubtful(at: reading) { return }
        _ = try? catalog.commit(.recordTime(lifetimeClock.mark(at: reading)))
    }
}
