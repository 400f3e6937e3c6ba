/// A download that resumes where it was interrupted.
///
/// The bytes are written to a partial file, which gets its final name in one step once it is complete and its digest, if the
/// server sent one (`Repr-Digest`, RFC 9530), is right. A file that had that name before is replaced.
public final class Download: DrivenTransfer {
    let client: TransferClient
    let plan: TransferPlan<DownloadOperation>
    let control: TransferControl<DownloadResult>
    let transferProgress: TransferProgress

    init(client: TransferClient, plan: TransferPlan<DownloadOperation>) {
        self.client = client
        self.plan = plan
        let control = TransferControl<DownloadResult>(checkpoint: plan.checkpoint)
        self.control = control
        transferProgress = TransferProgress(total: DownloadOperation.total(of: plan)) { control.requestStop(.pause) }
    }

    /// Waits for the download to end. Cancelling the task that waits pauses the download.
    /// - Throws: the error of the download. Unless nothing can be resumed, it has the resume data.
    public func value() async throws(TransferError) -> DownloadResult {
        start()
        return try await control.value()
    }
}
