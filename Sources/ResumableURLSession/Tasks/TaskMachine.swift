import FoundationNetworking

/// The state machine of a task. It decides what to do and does no I/O.
///
/// A task runs its transfer in runs: a suspension ends a run, and the next run uses the resume data of the previous
/// one. Each method returns the command to execute now.
struct TaskMachine: Sendable {
    enum Command: Sendable, Hashable {
        case nothing
        /// Begin a run.
        case start
        /// Stop the run so that it can be resumed; ``runEnded(isPaused:)`` follows.
        case pause
        /// Report the end now; the running transfer is stopped and cleaned up afterwards.
        case endNow
        /// Report the end now; nothing runs.
        case end
    }

    /// The reason why the task ends before its transfer.
    enum EarlyEnd: Sendable, Hashable {
        case cancel
        case cancelKeepingData
        /// An interruption after which the transfer is not tried again, or the time limit of the session.
        case abort
    }

    private enum Run: Sendable, Hashable { case none, active, stopping }

    /// The number of calls of `suspend()` without a matching `resume()`; a task begins suspended.
    private var suspensions = 1
    private var run = Run.none
    private(set) var earlyEnd: EarlyEnd?
    /// Whether the result of the task is final.
    private(set) var isOver = false
    private var isNotified = false

    var state: URLSessionTask.State {
        if isNotified { return .completed }
        if earlyEnd == .cancel || earlyEnd == .cancelKeepingData { return .canceling }
        return suspensions > 0 ? .suspended : .running
    }

    mutating func resume() -> Command {
        guard !isOver, earlyEnd == nil else { return .nothing }
        suspensions = max(0, suspensions - 1)
        guard suspensions == 0, run == .none else { return .nothing }
        run = .active
        return .start
    }

    mutating func suspend() -> Command {
        guard !isOver, earlyEnd == nil else { return .nothing }
        suspensions += 1
        guard run == .active else { return .nothing }
        run = .stopping
        return .pause
    }

    mutating func cancel() -> Command {
        // While a caller waits for resume data that is being created, a cancellation has no effect.
        guard !isOver, earlyEnd == nil || earlyEnd == .abort else { return .nothing }
        earlyEnd = .cancel
        isOver = true
        return run == .none ? .end : .endNow
    }

    mutating func cancelKeepingData() -> Command {
        guard !isOver, earlyEnd == nil || earlyEnd == .abort else { return .nothing }
        earlyEnd = .cancelKeepingData
        return stop()
    }

    /// Ends the task because of an interruption.
    mutating func abort() -> Command {
        guard !isOver, earlyEnd == nil else { return .nothing }
        earlyEnd = .abort
        return stop()
    }

    private mutating func stop() -> Command {
        switch run {
        case .none:
            isOver = true
            return .end
        case .active:
            run = .stopping
            return .pause
        case .stopping: return .nothing
        }
    }

    /// The command for a run whose transfer was just created.
    var commandForNewTransfer: Command {
        if isOver { return .endNow }
        return run == .stopping ? .pause : .nothing
    }

    /// Handles the end of a run.
    /// - Parameter isPaused: whether the transfer was paused.
    /// - Returns: `start`, `end`, or `nothing` if the task stays suspended or was over before.
    mutating func runEnded(isPaused: Bool) -> Command {
        guard !isOver else { return .nothing }
        let wasStopRequested = run == .stopping
        run = .none
        guard isPaused, wasStopRequested, earlyEnd == nil else {
            isOver = true
            return .end
        }
        guard suspensions == 0 else { return .nothing }
        run = .active
        return .start
    }

    /// Notes that the end was reported.
    mutating func didNotify() { isNotified = true }
}
