import Foundation

/// An upload or a download.
///
/// Nothing is sent before ``start()`` is called, the result is awaited or ``events`` is read.
public protocol Transfer: AnyObject, Sendable {
    /// Starts the transfer; without effect once it has started.
    func start()

    /// Stops the transfer so that it can be resumed, and waits until all of its work has ended.
    /// - Returns: the resume data, which can be used once; `nil` if the transfer cannot be resumed. If the transfer has
    ///   already failed, this is the resume data of its error.
    func pause() async -> ResumeData?

    /// Ends the transfer and waits until all of its work has ended.
    /// - Parameter deletingUpload: whether the upload resource is deleted from the server, or the partial file of a
    ///   download from the disk.
    func cancel(deletingUpload: Bool) async

    /// The data to resume the transfer as it is now; `nil` if it cannot be resumed. The caller ensures that only one
    /// transfer at a time resumes it.
    var checkpoint: ResumeData? { get }

    /// A new stream of events, which starts the transfer. It begins with the current state of the transfer and ends
    /// with `completed` or `failed`.
    var events: AsyncStream<TransferEvent> { get }

    /// The transferred bytes out of the total. Canceling or pausing this object pauses the transfer.
    var progress: Progress { get }
}

/// The common implementation of ``Upload`` and ``Download``: a transfer that a ``TransferDriver`` runs.
protocol DrivenTransfer: Transfer {
    associatedtype Operation: TransferOperation

    var client: TransferClient { get }
    var plan: TransferPlan<Operation> { get }
    var control: TransferControl<Operation.Success> { get }
    var transferProgress: TransferProgress { get }
}

extension DrivenTransfer {
    /// The transferred bytes out of the total. Canceling or pausing this object pauses the transfer.
    public var progress: Progress { transferProgress }

    /// The data to resume the transfer in its current state; `nil` if it cannot be resumed.
    public var checkpoint: ResumeData? { control.checkpoint }

    /// A new stream of events. It starts the transfer.
    public var events: AsyncStream<TransferEvent> {
        let stream = control.events.stream()
        start()
        return stream
    }

    /// Starts the transfer; without effect once it has started.
    public func start() {
        guard control.begin() else { return }
        let client = client
        let plan = plan
        let control = control
        let progress = transferProgress
        let identifier = ObjectIdentifier(self)
        // Registers the transfer before its work starts, because the work may end immediately.
        let isAdmitted = client.enter(self)
        control.run {
            defer { client.leave(identifier) }
            let driver = TransferDriver(client: client, plan: plan, control: control, progress: progress)
            return await driver.run(isAdmitted: isAdmitted)
        }
    }

    /// Pauses the transfer and waits until all of its work has ended.
    /// - Returns: the data to resume the transfer with; `nil` if it cannot be resumed.
    public func pause() async -> ResumeData? {
        control.requestStop(.pause)
        start()
        guard case .failure(let error) = await control.awaitEnd() else { return nil }
        return error.resumeData
    }

    /// Ends the transfer and waits until all of its work has ended.
    public func cancel(deletingUpload: Bool) async {
        control.requestStop(.cancel(deleting: deletingUpload))
        start()
        _ = await control.awaitEnd()
    }
}
