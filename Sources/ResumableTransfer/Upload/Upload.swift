import HTTPSemantics

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

    /// Waits for the upload to end. Canceling the task that waits pauses the upload.
    /// - Throws: the error of the upload, with resume data if the upload can be resumed.
    public func value() async throws(TransferError) -> UploadResult {
        start()
        return try await control.value()
    }

    /// Deletes only the upload resource. It is no error if the resource no longer exists.
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

/// The result of an upload: the response of the target resource, whatever its status is.
public struct UploadResult: Sendable, Hashable {
    /// The status of the final response, or of the last response if the final one was lost; `nil` if there was no
    /// response.
    public var status: Status?
    /// The fields of the same response.
    public var fields: Fields
    /// The content of the final response: up to 1 MiB of it, or 64 KiB if its status is not a success.
    public var content: [UInt8]
    /// The absolute URI in `Location` of the final response, else in `Content-Location`; `nil` if it has neither.
    public var location: String?
    /// Whether the server has all bytes, but its final response was lost.
    public var isResponseLost: Bool
    /// The URI of the upload resource, a secret; `nil` if the server created none.
    public var uploadURI: String?
    /// The number of bytes of content that all requests of this run have handed to the kernel.
    public var sent: Int64
    /// The number of bytes that the server has received.
    public var acknowledged: Int64
    /// The number of requests in this run, of any method.
    public var requests: Int

    /// A result with these values, for tests of callers.
    public init(
        status: Status?, fields: Fields, content: [UInt8], location: String?, isResponseLost: Bool, uploadURI: String?,
        sent: Int64, acknowledged: Int64, requests: Int
    ) {
        self.status = status
        self.fields = fields
        self.content = content
        self.location = location
        self.isResponseLost = isResponseLost
        self.uploadURI = uploadURI
        self.sent = sent
        self.acknowledged = acknowledged
        self.requests = requests
    }
}
