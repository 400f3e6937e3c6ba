import Foundation
import FoundationNetworking
import ResumableTransfer

/// A task that uses downloads of ResumableTransfer.
final class DownloadTask: URLSessionDownloadTask, TransferTask, @unchecked Sendable {
    /// The file for a handler on the delegate queue is removed when the handler returns. The file for an inline handler
    /// stays.
    typealias Recipient = TaskRecipient<URL>

    // All properties of this class are immutable or protected by the core's lock. Only members of the superclass that
    // are thread-safe by themselves are used.
    let core: TaskCore
    let recipient: Recipient
    /// Whether the task resumes an earlier download.
    let isResumed: Bool

    init(_ core: TaskCore, isResumed: Bool, recipient: Recipient) {
        self.core = core
        self.isResumed = isResumed
        self.recipient = recipient
        super.init()
        core.progress.control(self)
    }

    // MARK: Overridden, because the superclass has no session here

    override var taskIdentifier: Int { core.identifier }
    override var originalRequest: URLRequest? { core.originalRequest }
    override var currentRequest: URLRequest? { core.currentRequest }
    override var response: URLResponse? { core.withLock { $0.response } }
    override var error: (any Error)? { core.withLock { $0.error } }
    override var state: URLSessionTask.State { core.withLock { $0.machine.state } }
    override var progress: Progress { core.progress }
    override var countOfBytesSent: Int64 { 0 }
    override var countOfBytesExpectedToSend: Int64 { 0 }
    override var countOfBytesReceived: Int64 { core.withLock { $0.position } }
    override var countOfBytesExpectedToReceive: Int64 { core.withLock { $0.total } }
    override var countOfBytesClientExpectsToSend: Int64 {
        get { core.withLock { $0.expectedToSend } }
        set { core.withLock { $0.expectedToSend = newValue } }
    }
    override var countOfBytesClientExpectsToReceive: Int64 {
        get { core.withLock { $0.expectedToReceive } }
        set { core.withLock { $0.expectedToReceive = newValue } }
    }
    override var delegate: (any FoundationNetworking.URLSessionTaskDelegate)? {
        get { effectiveDelegate }
        set { setDelegate(newValue) }
    }

    override func resume() { resumeTransfer() }
    override func suspend() { suspendTransfer() }
    override func cancel() { cancelTransfer() }

    override func cancel(byProducingResumeData completionHandler: @escaping (Data?) -> Void) {
        // Called once, on the delegate queue.
        nonisolated(unsafe) let handler = completionHandler
        cancelTransfer(byProducingResumeData: { handler($0) })
    }
}
