import Foundation

/// An upload that goes on where it was interrupted.
public final class Upload: Transfer {
    public var progress: Progress { transferProgress }

    private let transferProgress: TransferProgress
    private let core: ClientCore
    private let plan: UploadPlan
    private let control: TransferControl<UploadResult>

    init(core: ClientCore, plan: UploadPlan) {
        self.core = core
        self.plan = plan
        let control = TransferControl<UploadResult>(checkpoint: plan.checkpoint)
        self.control = control
        transferProgress = TransferProgress(total: plan.length) { control.requestStop(.pause) }
    }

    public func start() {
        guard control.begin() else { return }
        let core = core
        let plan = plan
        let control = control
        let progress = transferProgress
        let identifier = ObjectIdentifier(self)
        // Noted before the work begins, which may be over at once.
        let isAdmitted = core.enter(self)
        control.run {
            defer { core.leave(identifier) }
            let driver = UploadDriver(core: core, plan: plan, control: control, progress: progress)
            return await driver.run(isAdmitted: isAdmitted)
        }
    }

    /// Waits for the upload to end. Cancelling the task that waits pauses the upload; the error that is thrown then, or
    /// after any other interruption, carries the resume data.
    public func value() async throws(TransferError) -> UploadResult {
        start()
        return try await control.value()
    }

    public func pause() async -> ResumeData? {
        control.requestStop(.pause)
        start()
        guard case .failure(let error) = await control.awaitEnd() else { return nil }
        return error.resumeData
    }

    public func cancel(deletingUpload: Bool) async {
        control.requestStop(.cancel(deleting: deletingUpload))
        start()
        _ = await control.awaitEnd()
    }

    public var checkpoint: ResumeData? { control.checkpoint }

    public var events: AsyncStream<TransferEvent> {
        let stream = control.events.stream()
        start()
        return stream
    }

    /// Deletes the upload resource and nothing else; one that is gone already is no error.
    /// - Returns: whether the server said that it deleted it.
    func discard() async throws(TransferError) -> Bool {
        control.requestStop(.cancel(deleting: true))
        start()
        guard case .failure(let error) = await control.awaitEnd() else { return true }
        if error.code == .gone { return false }
        if error.code != .cancelled { throw error }
        return error.status?.isSuccessful == true
    }
}
