import FoundationNetworking

/// What a task shall do and in which state it is, decided without doing anything.
///
/// A task runs its transfer in runs: a suspension ends a run, and the next one goes on from the resume data of the last.
/// Each method says what has to be done now.
struct TaskMachine: Sendable {
    enum Command: Sendable, Hashable {
        case nothing
        /// Begin a run.
        case start
        /// Stop the run so that it can be resumed; ``runEnded(isPaused:)`` follows.
        case pause
        /// Tell the end now; what runs is stopped and cleared away beside it.
        case abandon
        /// Tell the end now; nothing runs.
        case end
    }

    /// Why the task comes to its end before its transfer does.
    enum Wish: Sendable, Hashable {
        case cancel
        case cancelKeepingData
        /// An interruption that is not waited out.
        case giveUp
    }

    private enum Run: Sendable, Hashable { case none, active, stopping }

    /// Calls of suspend that no resume has matched; a task begins suspended.
    private var suspensions = 1
    private var run = Run.none
    private(set) var wish: Wish?
    /// Whether the end is decided.
    private(set) var isOver = false
    private var isTold = false

    var state: URLSessionTask.State {
        if isTold { return .completed }
        if wish == .cancel || wish == .cancelKeepingData { return .canceling }
        return suspensions > 0 ? .suspended : .running
    }

    mutating func resume() -> Command {
        guard !isOver, wish == nil else { return .nothing }
        suspensions = max(0, suspensions - 1)
        guard suspensions == 0, run == .none else { return .nothing }
        run = .active
        return .start
    }

    mutating func suspend() -> Command {
        guard !isOver, wish == nil else { return .nothing }
        suspensions += 1
        guard run == .active else { return .nothing }
        run = .stopping
        return .pause
    }

    mutating func cancel() -> Command {
        // While resume data is being made, somebody waits for it.
        guard !isOver, wish == nil || wish == .giveUp else { return .nothing }
        wish = .cancel
        isOver = true
        return run == .none ? .end : .abandon
    }

    mutating func cancelKeepingData() -> Command {
        guard !isOver, wish == nil || wish == .giveUp else { return .nothing }
        wish = .cancelKeepingData
        return stop()
    }

    /// The transfer is not waited for any longer.
    mutating func giveUp() -> Command {
        guard !isOver, wish == nil else { return .nothing }
        wish = .giveUp
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

    /// A run begins to have something that can be stopped.
    var commandForNewTransfer: Command {
        if isOver { return .abandon }
        return run == .stopping ? .pause : .nothing
    }

    /// A run has ended.
    /// - Parameter isPaused: because it was asked to.
    /// - Returns: `start`, `end`, or `nothing` where the task stays suspended or was over before.
    mutating func runEnded(isPaused: Bool) -> Command {
        guard !isOver else { return .nothing }
        let wasAsked = run == .stopping
        run = .none
        guard isPaused, wasAsked, wish == nil else {
            isOver = true
            return .end
        }
        guard suspensions == 0 else { return .nothing }
        run = .active
        return .start
    }

    /// Nothing more is told of the task.
    mutating func told() { isTold = true }
}
