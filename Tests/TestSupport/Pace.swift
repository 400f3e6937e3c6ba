import SystemCalls

/// Distinguishes a failure of the tested program from a delay of the test itself: a loaded machine may suspend the
/// test's threads for longer than a limit of the tested program.
package final class Pace: Sendable {
    private struct State {
        var last = ContinuousClock.now
        var longest = Duration.zero
    }

    private let state = Monitor(State())

    package init() {}

    /// The test calls this at each point at which the other side can observe activity.
    package func step() {
        state.withLock { state in
            let now = ContinuousClock.now
            state.longest = max(state.longest, now - state.last)
            state.last = now
        }
    }

    /// Whether the limit may have expired between two steps. Half of the limit is sufficient, because one pause for the
    /// other side can consist of two pauses of the test.
    private func mayHavePaused(for limit: Duration) -> Bool {
        step()
        return state.withLock { $0.longest >= limit / 2 }
    }

    /// Runs a body that must not pause for longer than a limit, and runs it again if it failed after such a pause.
    package static func within<Result>(_ limit: Duration, _ body: (Pace) throws -> Result) throws -> Result {
        for _ in 0..<9 {
            let pace = Pace()
            do { return try body(pace) } catch { guard pace.mayHavePaused(for: limit) else { throw error } }
        }
        return try body(Pace())
    }

    /// Does the same for a body that returns its failures as results.
    package static func within<Result>(
        _ limit: Duration, until isGood: (Result) -> Bool, _ body: (Pace) async throws -> Result
    ) async throws -> Result {
        for _ in 0..<9 {
            let pace = Pace()
            let result = try await body(pace)
            if isGood(result) || !pace.mayHavePaused(for: limit) { return result }
        }
        return try await body(Pace())
    }
}
