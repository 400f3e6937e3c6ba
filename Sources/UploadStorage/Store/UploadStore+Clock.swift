import SystemCalls

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
