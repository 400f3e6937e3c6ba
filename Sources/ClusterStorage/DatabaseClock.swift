import SystemCalls
import UploadStorage

/// The clock of the database, as far as a node has observed it.
///
/// If this clock is set forward, or a standby server with another clock replaces the database, uploads, final responses and
/// old objects seem to have expired. So after a jump forward nothing expires for one hour, in which the clock can be
/// corrected. A node that starts compares the clock with that of its own system.
struct DatabaseClock {
    /// The minimum difference that counts as a jump, in nanoseconds. It is larger than the error of a reading.
    static let jump: Int64 = 60_000_000_000

    /// The time of the database minus the time since the start of this system, in nanoseconds; nil before the first reading.
    private var difference: Int64?
    private var doubtfulUntil = Int64.min

    var isKnown: Bool { difference != nil }

    /// Records a reading of the clock of the database.
    /// - Parameters:
    ///   - wall: the time of the database in nanoseconds since 1970.
    ///   - boot: the time since the start of this system at the same moment.
    ///   - system: a reading of the clocks of this system.
    /// - Returns: the line for the log if the time is not the expected one.
    mutating func observed(_ wall: Int64, at boot: Int64, system: ClockReading) -> ClusterObservation.Note? {
        let ahead = wall - boot - (difference ?? system.wall - system.boot)
        let wasKnown = isKnown
        difference = wall - boot
        guard abs(ahead) >= Self.jump else { return nil }
        let seconds = abs(ahead) / 1_000_000_000
        let finding =
            wasKnown
            ? "was set \(seconds) s \(ahead < 0 ? "back" : "forward")"
            : "is \(seconds) s \(ahead < 0 ? "behind" : "ahead of") the clock of this server"
        if ahead < 0 { return .init(isProblem: true, text: "the clock of the database \(finding)") }
        doubtfulUntil = boot + LifetimeClock.grace
        return .init(
            isProblem: true,
            text: "the clock of the database \(finding); no upload expires for one hour, so that the clock can be"
                + " corrected")
    }

    /// The clock of the database at a moment. Before the first reading it is the clock of this system, and nothing
    /// expires.
    func reading(at system: ClockReading) -> ClockReading {
        var reading = system
        if let difference { reading.wall = system.boot + difference }
        reading.doubtfulUntil = isKnown ? doubtfulUntil : system.boot + LifetimeClock.grace
        return reading
    }
}
