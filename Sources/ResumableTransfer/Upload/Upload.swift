/// An upload that resumes where it was interrupted.
public final class Upload: DrivenTransfer {
    let client: TransferClient
    let plan: TransferPlan<UploadOperation>
    let control: TransferControl<UploadResult>
    let transferProgress: TransferProgress

    init(client: TransferClient, plan: TransferPlan<UploadOperation>) {
        self.client = client
        self.plan = plan
        let control = TransferControl<UploadResult>(checkpoint: plan.checkpoint)
        self.control = control
        transferProgress = TransferProgress(total: UploadOperation.total(of: plan)) { control.requestStop(.pause) }
    }

    /// Waits for the upload to end. Cancelling the task that waits pauses the upload.
    /// - Throws: the error of the upload. Unless nothing can be resumed, it has the resume data.
    public func value() async throws(TransferError) -> UploadResult {
        start()
        return try await control.value()
    }

    /// Deletes the upload resource and nothing else; one that is gone already is no error.
    /// - Returns: whether the server confirmed the deletion.
    func discard() async throws(TransferError) -> Bool {
        control.requestStop(.cancel(deleting: true))
        start()
        guard case .failure(let error) = await control.awaitEnd() else { return true }
        if error.code == .gone { return false }
        if error.code != .cancelled { throw error }
        return error.status?.isSuccessful == true
    }
}
