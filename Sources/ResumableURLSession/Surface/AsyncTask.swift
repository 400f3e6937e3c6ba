import Foundation
import FoundationNetworking
import SystemCalls

/// Awaits a session task. Canceling the Swift task that waits cancels the session task.
final class AsyncTask<Value: Sendable>: Sendable {
    private struct State {
        var task: URLSessionTask?
        var isCancelled = false
        var continuation: CheckedContinuation<Value, any Error>?
    }

    private let state = Monitor(State())

    private init() {}

    /// - Parameter make: makes a task that calls ``finish(_:_:_:)`` once.
    static func run(
        delegate: (any AnyTaskDelegate)?, _ make: (AsyncTask) -> URLSessionTask
    ) async throws -> Value {
        let waiting = AsyncTask()
        let task = make(waiting)
        if let delegate { task.delegate = delegate }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = waiting.state.withLock { state in
                    state.continuation = continuation
                    state.task = task
                    return state.isCancelled
                }
                if isCancelled { task.cancel() } else { task.resume() }
            }
        } onCancel: {
            let task = waiting.state.withLock { state in
                state.isCancelled = true
                return state.task
            }
            task?.cancel()
        }
    }

    private func finish(_ result: Result<Value, any Error>) {
        let continuation = state.withLock { state in
            defer {
                state.continuation = nil
                state.task = nil
            }
            return state.continuation
        }
        continuation?.resume(with: result)
    }
}

extension AsyncTask {
    /// Ends the wait with the arguments of a completion handler.
    func finish<Content>(
        _ content: Content?, _ response: URLResponse?, _ error: (any Error)?
    ) where Value == (Content, URLResponse) {
        if let content, let response, error == nil {
            finish(.success((content, response)))
        } else {
            finish(.failure(error ?? URLError(.badServerResponse)))
        }
    }
}
