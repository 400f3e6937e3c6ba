import Foundation

/// A download that goes on where it was interrupted.
///
/// The bytes lie in a partial file, which takes its final name in one step once it is whole and its digest, if the
/// server told one (`Repr-Digest`, RFC 9530), is right. A file that was there before is replaced by it.
public final class Download: Transfer {
    public var progress: Progress { transferProgress }

    private let transferProgress: TransferProgress
    private let core: ClientCore
    private let plan: DownloadPlan
    private let control: TransferControl<DownloadResult>

    init(core: ClientCore, plan: DownloadPlan) {
        self.core = core
        self.plan = plan
        let control = TransferControl<DownloadResult>(checkpoint: plan.checkpoint)
        self.control = control
        transferProgress = TransferProgress(total: plan.resumed?.total) { control.requestStop(.pause) }
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
            let driver = DownloadDriver(core: core, plan: plan, control: control, progress: progress)
            return await driver.run(isAdmitted: isAdmitted)
        }
    }

    /// Waits for the download to end. Cancelling the task that waits pauses the download; the error that is thrown
    /// then, or after any other interruption, carries the resume data.
    public func value() async throws(TransferError) -> DownloadResult {
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
}
