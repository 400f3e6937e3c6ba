extension ClusterModel.Limits {
    /// Each scenario permits much of something, and little of everything else, because the number of states is a product.
    static let scenarios: [Self] = [
        // Requests, lost responses, late calls; time does not pass.
        .init(
            time: 0, sessions: 2, takeOvers: 2, writes: 2, completions: 0, slowCalls: 0, faults: 1, renewals: 0,
            collections: 0),
        // Completion.
        .init(
            time: 0, sessions: 2, takeOvers: 1, writes: 1, completions: 2, slowCalls: 0, faults: 1, renewals: 0,
            collections: 0),
        // Slow renewals, and a take-over after the end of a session.
        .init(
            time: 3, secondEnd: 9, sessions: 2, takeOvers: 1, writes: 1, completions: 0, slowCalls: 1, faults: 0,
            renewals: 1, collections: 0),
        // A crash, or a lost change, and a take-over after the end of a session.
        .init(
            time: 2, sessions: 2, takeOvers: 1, writes: 2, completions: 0, slowCalls: 0, faults: 1, renewals: 0,
            collections: 0),
        // Collection.
        .init(
            time: 2, sessions: 2, takeOvers: 1, writes: 1, completions: 0, slowCalls: 0, faults: 1, renewals: 0,
            collections: 1),
        // A node continues with a new session.
        .init(
            time: 2, sessions: 3, takeOvers: 1, writes: 1, completions: 0, slowCalls: 0, faults: 1, renewals: 0,
            collections: 0),
    ]
}
