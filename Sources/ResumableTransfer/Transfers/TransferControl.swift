import HTTPTransport
import Synchronization
import SystemCalls

/// A caller's request that a transfer stop.
enum StopRequest: Sendable, Hashable {
    case pause
    /// - Parameter deleting: whether the upload resource, or the partial file, is deleted.
    case cancel(deleting: Bool)
}

/// The state that callers share with the work of one transfer: the stop request, the result and the checkpoint.
final class TransferControl<Success: Sendable>: Sendable {
    private struct State {
        var hasStarted = false
        var stop: StopRequest?
        /// Interrupts the operation that the work waits for.
        var interrupt: (@Sendable () -> Void)?
        var end: Result<Success, TransferError>?
        var waiters: [CheckedContinuation<Void, Never>] = []
        var resumeData: ResumeData?
        var priority = TaskPriority.medium
        /// The metrics of the last requests.
        var metrics: [RequestMetrics] = []
    }

    private let state: Mutex<State>
    let events = EventBroadcast()

    init(resumeData: ResumeData? = nil) {
        state = Mutex(State(resumeData: resumeData))
    }

    // MARK: For callers

    /// Marks the transfer as started. Returns true for the first call only.
    func begin() -> Bool {
        state.withLock { state in
            defer { state.hasStarted = true }
            return !state.hasStarted
        }
    }

    /// Runs the work of the transfer.
    /// - Parameter rejection: returns the error for a result that is a failure of the transfer; `nil` for any other
    ///   result.
    func perform(
        _ work: () async -> Result<Success, TransferError>, rejection: (Success) -> TransferError? = { _ in nil }
    ) async {
        let end = await work()
        state.withLock { state in
            state.interrupt = nil
            switch end {
            case .success: state.resumeData = nil
            case .failure(let error): state.resumeData = error.resumeData
            }
        }
        // The last event is sent before callers get the result, so that it precedes their reaction to the result.
        switch end {
        case .success(let success): events.send(rejection(success).map { .failed($0) } ?? .completed)
        case .failure(let error): events.send(.failed(error))
        }
        let waiters = state.withLock { state in
            state.end = end
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Requests that the work stop. Later requests have no effect, except that a cancellation replaces a pause, and a
    /// cancellation that deletes replaces one that does not.
    /// - Returns: false if the work has ended.
    @discardableResult
    func requestStop(_ stop: StopRequest) -> Bool {
        let (isRunning, interrupt) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            guard state.end == nil else { return (false, nil) }
            if state.stop == nil || state.stop != .cancel(deleting: true) && stop != .pause { state.stop = stop }
            return (true, state.interrupt)
        }
        interrupt?()
        return isRunning
    }

    /// Replaces the error of a failed transfer after an attempt to discard its resume data. Has no effect if the error
    /// has none.
    func replaceFailure(with error: TransferError) {
        state.withLock { state in
            guard case .failure(let previous)? = state.end, previous.resumeData != nil else { return }
            state.end = .failure(error)
            state.resumeData = error.resumeData
        }
    }

    /// Waits for the result of the work.
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

    /// Waits for the result of the work. Canceling the task that waits pauses the transfer.
    func value() async throws(TransferError) -> Success {
        let end = await withTaskCancellationHandler {
            await awaitEnd()
        } onCancel: {
            requestStop(.pause)
        }
        return try end.get()
    }

    var resumeData: ResumeData? { state.withLock { $0.resumeData } }

    var priority: TaskPriority {
        get { state.withLock { $0.priority } }
        set { state.withLock { $0.priority = newValue } }
    }

    /// The metrics of the last ``RequestMetrics/keptCount`` requests, in order.
    var metrics: [RequestMetrics] { state.withLock { $0.metrics } }

    // MARK: For the work

    var stop: StopRequest? { state.withLock { $0.stop } }

    /// Replaces the data that callers can resume the transfer with.
    func keep(_ data: ResumeData?) { state.withLock { $0.resumeData = data } }

    /// Waits for `operation`. A stop request calls `interrupt`; an earlier stop request calls it immediately.
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

    /// Waits for the result of a caller's closure. A stop request cancels the task in which the closure runs.
    /// - Parameter limit: for work after a stop request: the time after which the task is canceled, instead of by a stop
    ///   request. `nil`: a stop request cancels it.
    func result<Value: Sendable>(
        within limit: Duration? = nil, of closure: @escaping @Sendable () async throws -> Value
    ) async -> Result<Value, any Error> {
        let task = Task { try await closure() }
        guard let limit else { return await interruptible(by: { task.cancel() }, while: { await task.result }) }
        let timeout = Task {
            try await Task.sleep(for: limit)
            task.cancel()
        }
        defer { timeout.cancel() }
        return await task.result
    }

    /// Keeps the metrics of a request that has ended.
    func note(_ metrics: RequestMetrics) {
        state.withLock { state in
            if state.metrics.count >= RequestMetrics.keptCount { state.metrics.removeFirst() }
            state.metrics.append(metrics)
        }
    }

    /// Waits until `isReady` returns true, or until a stop is requested.
    /// - Parameter isReady: receives a closure, which has to be called when the result of `isReady` may have changed.
    /// - Returns: whether `isReady` returned true.
    func wait(until isReady: (@escaping @Sendable () -> Void) -> Bool) async -> Bool {
        while stop == nil {
            let (change, continuation) = AsyncStream.makeStream(of: Void.self)
            if isReady({ continuation.finish() }) { return true }
            await interruptible(by: { continuation.finish() }, while: { for await _ in change {} })
        }
        return false
    }

    /// Waits for `duration`, or until a stop is requested.
    func sleep(for duration: Duration) async {
        guard duration > .zero else { return }
        let pause = Task { try await Task.sleep(for: duration) }
        await interruptible(by: { pause.cancel() }, while: { _ = await pause.result })
    }
}
