import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import SystemCalls

/// The data that a task needs besides its resume data to be resumed: the request with its credentials, and bytes in
/// memory.
struct TaskContext: Sendable {
    var request: TransferRequest
    /// The content of an upload of a `Data` value.
    var content: Data?

    /// The request as the application has made it.
    var original: URLRequest?

    init(request: TransferRequest, content: Data? = nil, original: URLRequest? = nil) {
        self.request = request
        self.content = content
        self.original = original
    }
}

/// The contexts of the resume data that this process has returned. They are never written to a file.
final class TaskContexts: Sendable {
    static let shared = TaskContexts()

    private struct State {
        var contexts: [ResumeData: TaskContext] = [:]
        /// The keys of `contexts`, the oldest first.
        var order: [ResumeData] = []
    }

    /// The maximum number of contexts. If there are more, the oldest are removed.
    private let limit: Int
    private let state = Monitor(State())

    init(limit: Int = 256) {
        self.limit = limit
    }

    func keep(_ context: TaskContext, for data: ResumeData) {
        state.withLock { state in
            if state.contexts.updateValue(context, forKey: data) == nil { state.order.append(data) }
            if state.order.count > limit { state.contexts[state.order.removeFirst()] = nil }
        }
    }

    func context(of data: ResumeData) -> TaskContext? { state.withLock { $0.contexts[data] } }

    func forget(_ data: ResumeData) {
        state.withLock { state in
            if state.contexts.removeValue(forKey: data) != nil { state.order.removeAll { $0 == data } }
        }
    }
}
