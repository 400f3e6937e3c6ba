import Foundation
import FoundationNetworking
import ResumableTransfer
import ResumableUpload
import SystemCalls

/// The mutable state of a task.
final class TaskCore: Sendable {
    struct State {
        var machine = TaskMachine()
        /// The resume data for the next run; `nil` if it starts from the beginning.
        var data: ResumeData?
        /// The transfer of the current run.
        var transfer: (any Transfer)?
        /// Whether the first run has begun.
        var hasBegun = false
        /// The interruption that has ended the task.
        var interruption: TransferError?
        /// The handlers that wait for resume data.
        var handlers: [@Sendable (Data?) -> Void] = []
        var timer: Task<Void, Never>?

        var delegate: (any AnyTaskDelegate)?
        var response: URLResponse?
        var error: (any Error)?
        /// The number of bytes of the representation that were sent by an upload, or received by a download.
        var position: Int64 = 0
        var total: Int64 = NSURLSessionTransferSizeUnknown
        /// The number of bytes in the response to an upload.
        var answered: Int64 = 0
        /// Whether the position of the resumption has not been reported yet.
        var isAwaitingResumption = false
        /// The request that was sent last to the target, after redirections; `nil`: the original one.
        var currentRequest: URLRequest?
        /// The change of the delegate at the last redirection.
        var redirection: RedirectionChange?
        var hasDeclinedRedirection = false
        var redirectCount = 0
        /// The metrics of the last ``TaskCore/maxTransactions`` requests.
        var transactions: [URLSessionTaskTransactionMetrics] = []
        var expectedToSend: Int64 = NSURLSessionTransferSizeUnknown
        var expectedToReceive: Int64 = NSURLSessionTransferSizeUnknown
    }

    let identifier: Int
    let createdAt = Date()
    let session: URLSession
    let progress = TransferProgress()
    let originalRequest: URLRequest?
    /// The data that is needed besides the resume data to resume the transfer; `nil` if there is only the resume data.
    let context: TaskContext?
    /// The error of a task that cannot run at all.
    let refusal: TransferError?
    let credentials: TaskCredentials
    /// The settings of the connections; `nil` for a task that cannot run.
    let connection: ConnectionSettings?
    private let state: Monitor<State>

    init(
        identifier: Int, session: URLSession, request: URLRequest?, data: ResumeData? = nil,
        context: TaskContext? = nil,
        refusal: TransferError? = nil, credentials: URLCredentialStorage? = nil,
        connection: ConnectionSettings? = nil
    ) {
        self.identifier = identifier
        self.session = session
        originalRequest = request
        self.context = context
        self.refusal = refusal
        self.credentials = TaskCredentials(credentials)
        self.connection = connection
        var state = State()
        state.data = data
        self.state = Monitor(state)
    }

    func withLock<Result>(_ body: (inout State) -> Result) -> Result { state.withLock(body) }

    /// Runs `body` on the delegate queue, unless the task has already ended.
    func deliverEvent(_ body: @escaping @Sendable () -> Void) {
        state.withLock { state in
            if !state.machine.isOver { session.delegateQueue.addOperation(body) }
        }
    }

    /// Runs `body` on the delegate queue.
    func deliver(_ body: @escaping @Sendable () -> Void) {
        session.delegateQueue.addOperation(body)
    }
}

extension TaskCore {
    private static let maxTransactions = 1000

    /// The session; `nil` for a plain `URLSession`, which has no client.
    var transferSession: ResumableURLSession? { session as? ResumableURLSession }

    /// The request after redirections.
    var currentRequest: URLRequest? { withLock { $0.currentRequest } ?? originalRequest }

    /// The URL of the last response.
    var lastURL: URL? { currentRequest?.url }

    /// Notes the request that is about to be sent, if it is one to the target.
    func noteRequest(_ url: URL, of step: ClientRequest) {
        guard step.kind == .create || step.kind == .download else { return }
        withLock { state in
            guard case .other = step.resource else {
                state.currentRequest = nil
                return
            }
            var request = state.redirection?.request
            if request?.url != url { request = originalRequest }
            request?.url = url
            state.currentRequest = request
        }
    }

    func note(_ transaction: URLSessionTaskTransactionMetrics) {
        withLock { state in
            if state.transactions.count >= Self.maxTransactions { state.transactions.removeFirst() }
            state.transactions.append(transaction)
        }
    }

    /// The metrics of a task that ends now.
    var metrics: URLSessionTaskMetrics {
        withLock {
            URLSessionTaskMetrics($0.transactions, createdAt: createdAt, redirectCount: $0.redirectCount)
        }
    }
}

/// Decides after which interruptions a task continues automatically.
///
/// Apple documents that a task does so after "a momentary network interruption" of a transfer that can be resumed. The
/// task fails immediately if the transfer cannot be resumed yet, or if no byte moves during the request's timeout.
enum InterruptionPolicy {
    static func tolerates(_ error: TransferError, canResume: Bool) -> Bool {
        canResume && error.code != .timedOut
    }
}
