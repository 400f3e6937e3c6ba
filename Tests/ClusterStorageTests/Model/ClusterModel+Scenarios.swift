import ClusterStorage

extension ClusterModel.Limits {
    /// A limit for each feature that a scenario does not name.
    private static func scenario(_ adjust: (inout Self) -> Void) -> Self {
        var limits = Self(
            time: 0, sessions: 2, takeOvers: 1, writes: 0, completions: 0, slowCalls: 0, faults: 0, renewals: 0,
            collections: 0)
        adjust(&limits)
        return limits
    }

    /// Each scenario has high limits for a few features and low limits for the others, because the number of states
    /// grows with the product of the limits. The scenarios with the fewest states are first.
    static let scenarios: [Self] = [
        // A short or plain upload without a row.
        scenario { ($0.isShort, $0.publications, $0.faults) = (true, 2, 2) },
        scenario { ($0.isShort, $0.isPlain, $0.publications, $0.faults) = (true, true, 2, 2) },
        // Completion.
        scenario { ($0.writes, $0.completions, $0.faults) = (1, 2, 1) },
        // A target resource processes the upload, also while sessions end and others begin.
        scenario { ($0.takeOvers, $0.processings, $0.completions) = (2, 2, 1) },
        scenario { ($0.time, $0.secondEnd, $0.sessions, $0.processings, $0.completions) = (2, 9, 3, 1, 2) },
        scenario {
            ($0.time, $0.secondEnd, $0.sessions, $0.processings) = (2, 9, 3, 1)
            ($0.completions, $0.slowCalls) = (1, 1)
        },
        // A cancellation, also after the end of a session.
        scenario { ($0.time, $0.cancellations, $0.faults) = (2, 1, 1) },
        scenario { ($0.takeOvers, $0.cancellations, $0.ends, $0.faults) = (2, 1, 1, 1) },
        // A crash, or a lost change, and a take-over after the end of a session.
        scenario { ($0.time, $0.writes, $0.faults) = (2, 2, 1) },
        // The publication of an upload, whose answer can be lost, and a take-over after the end of a session.
        scenario { ($0.time, $0.publications, $0.faults) = (2, 2, 1) },
        // A short upload without a row, while the session changes.
        scenario {
            ($0.isShort, $0.time, $0.sessions, $0.publications, $0.faults, $0.slowCalls) = (true, 2, 3, 1, 2, 1)
        },
        // An acquisition whose call or response is late.
        scenario { ($0.takeOvers, $0.ends, $0.faults, $0.slowCalls) = (2, 1, 1, 1) },
        // Uses that end, and uploads that two servers yield to each other.
        scenario { ($0.takeOvers, $0.writes, $0.ends, $0.faults) = (2, 1, 1, 1) },
        scenario { ($0.takeOvers, $0.writes, $0.ends) = (3, 1, 1) },
        // The clock of the database is set.
        scenario { ($0.time, $0.secondEnd, $0.writes, $0.clockSteps) = (1, 4, 2, 1) },
        scenario { ($0.secondEnd, $0.takeOvers, $0.writes, $0.faults, $0.clockSteps) = (4, 2, 1, 1, 1) },
        // Objects that are in no row after a rejected or lost change.
        scenario { ($0.writes, $0.faults, $0.discards) = (2, 1, 1) },
        scenario { ($0.time, $0.writes, $0.faults, $0.discards, $0.collections) = (2, 1, 1, 1, 1) },
        // A session that is opened twice, because the first response is lost or the first call is late.
        scenario { ($0.time, $0.secondEnd, $0.sessions, $0.faults) = (2, 9, 4, 1) },
        // Collection.
        scenario { ($0.time, $0.writes, $0.faults, $0.collections) = (2, 1, 1, 1) },
        // Requests, lost responses, late calls; time does not pass.
        scenario { ($0.takeOvers, $0.writes, $0.faults) = (2, 2, 1) },
        // A publication while others acquire the upload.
        scenario { ($0.takeOvers, $0.publications, $0.faults) = (2, 2, 1) },
        // A node continues with a new session.
        scenario { ($0.time, $0.sessions, $0.writes, $0.faults) = (2, 3, 1, 1) },
        // A target resource processes the upload while a session ends; a response is lost, a call is late, or a node crashes.
        scenario {
            ($0.time, $0.secondEnd, $0.sessions, $0.processings, $0.completions, $0.faults) = (2, 9, 3, 1, 1, 1)
        },
        // Slow renewals, and a take-over after the end of a session.
        scenario { ($0.time, $0.secondEnd, $0.writes, $0.slowCalls, $0.renewals) = (3, 9, 1, 1, 1) },
    ]
}
