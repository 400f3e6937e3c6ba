import Foundation
import FoundationNetworking
import ResumableTransfer

/// A task that performs an upload of ResumableTransfer.
final class UploadTask: URLSessionUploadTask, TransferTask, @unchecked Sendable {
    enum Body: Sendable {
        case file(URL)
        case data(Data)
    }

    typealias Recipient = TaskRecipient<Data>

    // All properties of this class are immutable or protected by the core's lock. Only members of the superclass that
    // are thread-safe by themselves are used.
    let core: TaskCore
    let recipient: Recipient
    let body: Body?

    /// - Parameter body: `nil` if an upload is resumed.
    init(_ core: TaskCore, body: Body?, recipient: Recipient) {
        self.core = core
        self.body = body
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
    override var countOfBytesSent: Int64 { core.withLock { $0.position } }
    override var countOfBytesExpectedToSend: Int64 { core.withLock { $0.total } }
    override var countOfBytesReceived: Int64 { core.withLock { $0.answered } }
    override var countOfBytesExpectedToReceive: Int64 {
        core.withLock { $0.response }?.expectedContentLength ?? NSURLSessionTransferSizeUnknown
    }
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
}

extension UploadTask {
    /// Creates a task for a plain `URLSession`, which cannot resume an upload. The task fails like a task whose resume
    /// data is invalid.
    convenience init(refusing data: Data, in session: URLSession, _ recipient: Recipient) {
        let refusal = TransferError(.resumeDataInvalid, "A plain URLSession cannot resume an upload.")
        let core = TaskCore(identifier: 0, session: session, request: nil, refusal: refusal)
        self.init(core, body: nil, recipient: recipient)
    }
}
