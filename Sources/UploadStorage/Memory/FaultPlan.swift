import SystemCalls

/// The failures to simulate. Every operation of the in-memory implementations is a step; steps are counted from 1.
package final class FaultPlan: Sendable {
    package enum Operation: Sendable, Hashable {
        case create, open, write, read, synchronize, truncate, remove, removeDirectory, setTime, rename
        case synchronizeNames, commit
        /// The moment between a commit and the return of the call.
        case committed
    }

    private struct State {
        var steps = 0
        var history: [Operation] = []
        var isCrashed = false
        var crashStep: Int?
        var failures: [Int: Errno] = [:]
        var failing: [Operation: Errno] = [:]
        var failingOnce: (operation: Operation, remaining: Int, error: Errno)?
        var failingAfter: (Operation, [Operation: Errno])?
        var before: (Operation, @Sendable () -> Void)?
    }

    private let state: Monitor<State>

    /// - Parameters:
    ///   - crashStep: the step at which a crash is simulated: this step and all later steps fail and change nothing.
    ///   - failures: the errors of steps that fail, by the number of the step.
    package init(crashStep: Int? = nil, failures: [Int: Errno] = [:]) {
        state = Monitor(State(crashStep: crashStep, failures: failures))
    }

    /// The number of steps so far.
    package var steps: Int { state.withLock { $0.steps } }

    package var history: [Operation] { state.withLock { $0.history } }

    package var isCrashed: Bool { state.withLock { $0.isCrashed } }

    /// Simulates a crash now: every later operation fails and changes nothing.
    package func crash() { state.withLock { $0.isCrashed = true } }

    /// Simulates a crash at a later step: after `count` more steps.
    package func crash(inSteps count: Int) { state.withLock { $0.crashStep = $0.steps + count + 1 } }

    /// Makes one operation of this kind fail: the one with this number, counted from now on.
    package func fail(occurrence: Int, of operation: Operation, with error: Errno) {
        state.withLock { $0.failingOnce = (operation, occurrence, error) }
    }

    /// Makes every operation of this kind fail from now on; `nil` makes them succeed again.
    package func fail(_ operation: Operation, with error: Errno?) {
        state.withLock { $0.failing[operation] = error }
    }

    /// Makes every operation of the kinds in `operations` fail after the next operation of the kind `operation`.
    package func fail(_ operations: [Operation], after operation: Operation, with error: Errno) {
        let failing = Dictionary(uniqueKeysWithValues: operations.map { ($0, error) })
        state.withLock { $0.failingAfter = (operation, failing) }
    }

    /// Runs `body` once, before the next operation of this kind.
    package func run(before operation: Operation, _ body: @escaping @Sendable () -> Void) {
        state.withLock { $0.before = (operation, body) }
    }

    /// Counts an operation, and throws if it has to fail. Called before the operation has any effect.
    func step(_ operation: Operation) throws(Errno) {
        let body = state.withLock { state -> (@Sendable () -> Void)? in
            guard let (awaited, body) = state.before, awaited == operation else { return nil }
            state.before = nil
            return body
        }
        body?()
        try state.withLock { (state) throws(Errno) in
            if state.isCrashed { throw .inputOutput }
            state.steps += 1
            state.history.append(operation)
            if state.steps == state.crashStep {
                state.isCrashed = true
                throw .inputOutput
            }
            if let error = state.failures[state.steps] ?? state.failing[operation] { throw error }
            if let once = state.failingOnce, once.operation == operation {
                state.failingOnce?.remaining -= 1
                if once.remaining == 1 { throw once.error }
            }
            if let (trigger, failing) = state.failingAfter, trigger == operation {
                state.failing.merge(failing) { $1 }
                state.failingAfter = nil
            }
        }
    }
}
