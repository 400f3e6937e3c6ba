import FoundationNetworking
import SystemCalls

/// The tasks of a session that have not ended.
final class TaskRegistry: Sendable {
    private struct State {
        // FoundationNetworking counts its own tasks from 1.
        var nextIdentifier = 1 << 32 + 1
        var tasks: [Int: URLSessionTask] = [:]
        var isClosed = false
        /// Called once, when the last task has ended.
        var whenEmpty: (@Sendable () -> Void)?
    }

    private let state = Monitor(State())

    func makeIdentifier() -> Int {
        state.withLock { state in
            defer { state.nextIdentifier += 1 }
            return state.nextIdentifier
        }
    }

    /// Whether the session accepts no more tasks.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    func add(_ task: URLSessionTask) { state.withLock { $0.tasks[task.taskIdentifier] = task } }

    func remove(_ identifier: Int) {
        let whenEmpty = state.withLock { state -> (@Sendable () -> Void)? in
            state.tasks[identifier] = nil
            guard state.tasks.isEmpty else { return nil }
            defer { state.whenEmpty = nil }
            return state.whenEmpty
        }
        whenEmpty?()
    }

    /// The tasks in the order of their creation.
    var tasks: [URLSessionTask] {
        state.withLock { state in state.tasks.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// Stops accepting tasks.
    /// - Parameter whenEmpty: called once, when the last task has ended; never called if the registry was closed
    ///   before.
    /// - Returns: whether the registry was open.
    @discardableResult
    func close(_ whenEmpty: @escaping @Sendable () -> Void) -> Bool {
        let (isFirst, isEmpty) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.isClosed = true
            if !state.tasks.isEmpty { state.whenEmpty = whenEmpty }
            return (true, state.tasks.isEmpty)
        }
        if isEmpty { whenEmpty() }
        return isFirst
    }
}
