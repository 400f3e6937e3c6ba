import Foundation
import FoundationNetworking
import ResumableTransfer
import Synchronization
import SystemCalls

/// The changing parts of a task.
final class TaskCore: Sendable {
    struct State {
        var machine = TaskMachine()
        /// What the next run begins with; `nil`: with nothing.
        var data: ResumeData?
        /// The present run's.
        var transfer: (any Transfer)?
        /// Whether a run has begun ever.
        var hasBegun = false
        /// What was not waited out.
        var interruption: TransferError?
        /// They wait for resume data.
        var handlers: [@Sendable (Data?) -> Void] = []
        var timer: Task<Void, Never>?

        var delegate: (any URLSessionTaskDelegate)?
        var response: URLResponse?
        var error: (any Error)?
        /// Bytes of the representation so far, of the direction that the task is about.
        var position: Int64 = 0
        var total: Int64 = NSURLSessionTransferSizeUnknown
        /// Bytes of an upload's response.
        var answered: Int64 = 0
        /// Whether the position of the resumption has not been reported yet.
        var awaitsResumption = false
        var expectedToSend: Int64 = NSURLSessionTransferSizeUnknown
        var expectedToReceive: Int64 = NSURLSessionTransferSizeUnknown
    }

    let identifier: Int
    let session: URLSession
    let progress = TransferProgress()
    let originalRequest: URLRequest?
    /// Why the task cannot run at all.
    let refusal: TransferError?
    private let state: Monitor<State>

    init(
        identifier: Int, session: URLSession, request: URLRequest?, data: ResumeData? = nil,
        refusal: TransferError? = nil
    ) {
        self.identifier = identifier
        self.session = session
        originalRequest = request
        self.refusal = refusal
        var state = State()
        state.data = data
        self.state = Monitor(state)
    }

    func withLock<Result>(_ body: (inout State) -> Result) -> Result { state.withLock(body) }

    /// Runs `body` on the delegate queue, but not after the end that the task has come to meanwhile.
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

/// Which interruptions a task bridges by itself.
///
/// Apple promises that of "a momentary network interruption" of a transfer that can be resumed. All other errors are reported at
/// once: a server that cannot be reached, or one that is silent for the request's timeout.
enum InterruptionPolicy {
    static func bridges(_ error: TransferError, canResume: Bool) -> Bool {
        canResume && error.code != .timedOut
    }
}

/// A flag of which only the first call counts.
final class SingleDecision: Sendable {
    private let isTaken = Atomic(false)

    func isFirst() -> Bool { !isTaken.exchange(true, ordering: .relaxed) }
}
