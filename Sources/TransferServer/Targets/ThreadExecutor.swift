import SystemCalls

/// Runs an asynchronous function on the thread that waits for its result.
///
/// The thread of a connection is the executor of its handler. Therefore a handler that blocks occupies only the thread
/// of its own connection, and no thread of the cooperative pool, however many handlers run at the same time. Only code
/// of another isolation, such as that of an actor with its own executor, runs on other threads.
final class ThreadExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        /// Whether the thread still runs jobs. Later jobs run in the cooperative pool.
        var isServed = true
        var hasReturned = false
        var isCanceled = false
        /// The time in monotonic nanoseconds at which the thread stops waiting for the result; `nil` for no limit.
        var deadline: Int64?
        var cancelTask: (@Sendable () -> Void)?
    }

    private let state = Monitor(State())

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isServed = state.withLock { state in
            if state.isServed { state.jobs.append(job) }
            return state.isServed
        }
        if isServed { state.notifyAll() } else { globalConcurrentExecutor.enqueue(ExecutorJob(job)) }
    }

    /// Runs `body`, whose nonisolated code runs on the calling thread. Call this method only once.
    /// - Returns: the result of `body`; `nil` if `body` did not return in time after ``cancel(within:)``. In that case
    ///   `body` continues in the cooperative pool, and its result is discarded.
    func run<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value? {
        let result = Monitor<Value?>(nil)
        // The task keeps this executor alive, because jobs refer to it without owning it.
        let task = Task(executorPreference: self) { [self] in
            let value = await body()
            result.withLock { $0 = value }
            state.withLock { $0.hasReturned = true }
            state.notifyAll()
        }
        let isCanceled = state.withLock { state in
            state.cancelTask = { task.cancel() }
            return state.isCanceled
        }
        if isCanceled { task.cancel() }
        while let job = nextJob() { job.runSynchronously(on: asUnownedTaskExecutor()) }
        return result.withLock { $0 }
    }

    /// Cancels the task of the function, from any thread. From now on the thread of the connection waits for the result
    /// for at most `limit`.
    func cancel(within limit: Duration) {
        let cancelTask = state.withLock { state in
            state.isCanceled = true
            state.deadline = state.deadline ?? SystemClock.deadline(in: limit)
            return state.cancelTask
        }
        cancelTask?()
        state.notifyAll()
    }

    /// Whether ``cancel(within:)`` was called.
    var isCanceled: Bool { state.withLock { $0.isCanceled } }

    private enum Step {
        case job(UnownedJob)
        case end
        case newDeadline
    }

    /// Waits for the next job; returns `nil` if the function has returned, or if the time after a cancellation is over.
    private func nextJob() -> UnownedJob? {
        while true {
            let deadline = state.withLock { $0.deadline }
            let step: Step? = state.wait(until: deadline) { state in
                if state.hasReturned || state.deadline.map({ $0 <= SystemClock.monotonicNanoseconds() }) == true {
                    return .end
                }
                if !state.jobs.isEmpty { return .job(state.jobs.removeFirst()) }
                return state.deadline == deadline ? nil : .newDeadline
            }
            switch step {
            case .job(let job): return job
            case .newDeadline: continue
            case .end, nil:
                endService()
                return nil
            }
        }
    }

    /// Enqueues the remaining jobs in the cooperative pool. They belong to a function that did not return in time, or
    /// to an actor that already runs on another thread.
    private func endService() {
        let jobs = state.withLock { state in
            state.isServed = false
            state.cancelTask = nil
            defer { state.jobs = [] }
            return state.jobs
        }
        for job in jobs { globalConcurrentExecutor.enqueue(ExecutorJob(job)) }
    }
}

/// One call of an asynchronous function of a handler, from the thread of a connection.
struct HandlerCall {
    let executor = ThreadExecutor()
    private let connection: ConnectionEntry
    private let processingWait: Duration

    /// - Parameter processingWait: the time that a canceled handler has to return.
    init(_ connection: ConnectionEntry, processingWait: Duration) {
        self.connection = connection
        self.processingWait = processingWait
    }

    /// Runs `body` on this thread. If the server must end before `body` has returned, the task of `body` is canceled.
    /// - Returns: `nil` if `body` did not return in time after it was canceled.
    func run<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value? {
        connection.onStop { [executor, processingWait] in executor.cancel(within: processingWait) }
        defer { connection.onStop(nil) }
        return executor.run(body)
    }

    /// Runs `body`, which awaits nothing, on this thread without a task.
    func runSynchronously<Value>(_ body: () -> Value) -> Value {
        connection.onStop { [executor, processingWait] in executor.cancel(within: processingWait) }
        defer { connection.onStop(nil) }
        return body()
    }

    /// Whether the server ended the call.
    var isCanceled: Bool { executor.isCanceled }
}
