import SystemCalls

/// Distinguishes a failure of the subject from a standstill of the test itself, whose threads a loaded machine may halt for
/// longer than the limit that must not be over.
final class Pace: Sendable {
    private struct State {
        var last = ContinuousClock.now
        var longest = Duration.zero
    }

    private let state = Monitor(State())

    /// Called at each point at which the other side may see activity.
    func step() {
        state.withLock { state in
            let now = ContinuousClock.now
            state.longest = max(state.longest, now - state.last)
            state.last = now
        }
    }

    /// Whether a limit may have been over between two steps: what the other side sees as one pause may be part of two of ours.
    private func stoodStill(for limit: Duration) -> Bool {
        step()
        return state.withLock { $0.longest >= limit / 2 }
    }

    /// Runs a body that must not pause for longer than a limit, and runs it again if it failed after a standstill.
    static func within<Result>(_ limit: Duration, _ body: (Pace) throws -> Result) throws -> Result {
        for _ in 0..<9 {
            let pace = Pace()
            do { return try body(pace) } catch { guard pace.stoodStill(for: limit) else { throw error } }
        }
        return try body(Pace())
    }

    /// The same if failures are in the result.
    static func within<Result>(
        _ limit: Duration, until isGood: (Result) -> Bool, _ body: (Pace) async throws -> Result
    ) async throws -> Result {
        for _ in 0..<9 {
            let pace = Pace()
            let result = try await body(pace)
            if isGood(result) || !pace.stoodStill(for: limit) { return result }
        }
        return try await body(Pace())
    }
}
