import SystemCalls

/// What callers and the work of one transfer share: whether it shall stop, how it ended, and what can be resumed.
final class TransferControl<Success: Sendable>: Sendable {
    /// Why the work shall stop.
    enum Stop: Sendable, Hashable {
        case pause
        case cancel(deleting: Bool)
    }

    private struct State {
        var hasStarted = false
        var stop: Stop?
        /// Ends what the work is waiting for.
        var interrupt: (@Sendable () -> Void)?
        var end: Result<Success, TransferError>?
        var waiters: [CheckedContinuation<Void, Never>] = []
        var checkpoint: ResumeData?
    }

    private let state: Monitor<State>
    let events = EventBroadcast()

    init(checkpoint: ResumeData? = nil) {
        state = Monitor(State(checkpoint: checkpoint))
    }

    // MARK: For callers

    /// Whether the transfer begins now; true once.
    func begin() -> Bool {
        state.withLock { state in
            defer { state.hasStarted = true }
            return !state.hasStarted
        }
    }

    /// Runs the work of the transfer in a task of its own.
    func run(_ work: @escaping @Sendable () async -> Result<Success, TransferError>) {
        Task {
            let end = await work()
            let waiters = state.withLock { state in
                state.end = end
                state.interrupt = nil
                if case .success = end { state.checkpoint = nil }
                defer { state.waiters = [] }
                return state.waiters
            }
            switch end {
            case .success: events.send(.completed)
            case .failure(let error): events.send(.failed(error))
            }
            for waiter in waiters { waiter.resume() }
        }
    }

    /// Asks the work to stop. The first wish counts, but that a cancellation takes the place of a pause.
    func requestStop(_ stop: Stop) {
        let interrupt = state.withLock { state -> (@Sendable () -> Void)? in
            guard state.end == nil else { return nil }
            if state.stop == nil || state.stop == .pause { state.stop = stop }
            return state.interrupt
        }
        interrupt?()
    }

    /// How the work ended, once it has.
    func awaitEnd() async -> Result<Success, TransferError> {
        while true {
            if let end = state.withLock({ $0.end }) { return end }
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.end == nil { state.waiters.append(continuation) }
                    return state.end != nil
                }
                if isOver { continuation.resume() }
            }
        }
    }

    /// The result. Cancelling the task that waits for it pauses the transfer.
    func value() async throws(TransferError) -> Success {
        let end = await withTaskCancellationHandler {
            await awaitEnd()
        } onCancel: {
            requestStop(.pause)
        }
        return try end.get()
    }

    var checkpoint: ResumeData? { state.withLock { $0.checkpoint } }

    var hasEnded: Bool { state.withLock { $0.end != nil } }

    // MARK: For the work

    var stop: Stop? { state.withLock { $0.stop } }

    /// Keeps what could be resumed from now on; `isNews`: and tells it.
    func keep(_ checkpoint: ResumeData?, isNews: Bool) {
        state.withLock { $0.checkpoint = checkpoint }
        if isNews, let checkpoint { events.send(.checkpoint(checkpoint)) }
    }

    /// The error of a transfer that could not claim the data that it was to resume. Unless that is used up or in use, it is
    /// as good as before.
    func unclaimed(_ error: TransferError, _ data: ResumeData?) -> TransferError {
        keep(nil, isNews: false)
        var error = error
        if error.code != .resumeDataUsed { error.resumeData = data }
        return error
    }

    /// Waits for `operation`; a wish to stop calls `interrupt`, at once where it was there before.
    func interruptible<Result>(
        by interrupt: @escaping @Sendable () -> Void, while operation: () async throws -> Result
    ) async rethrows -> Result {
        let isStopped = state.withLock { state in
            state.interrupt = interrupt
            return state.stop != nil
        }
        if isStopped { interrupt() }
        defer { state.withLock { $0.interrupt = nil } }
        return try await operation()
    }

    /// Waits for this long, or until somebody wants the work to stop.
    func sleep(for duration: Duration) async {
        guard duration > .zero else { return }
        let pause = Task { try await Task.sleep(for: duration) }
        await interruptible(by: { pause.cancel() }, while: { _ = await pause.result })
    }
}
