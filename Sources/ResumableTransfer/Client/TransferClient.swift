import HTTPSemantics
import ResumableUpload
import SystemCalls

/// Uploads and downloads that go on where they were interrupted.
///
/// All transfers of a client share one thread for their connections. A transfer holds on to what it needs of its client.
public final class TransferClient: Sendable {
    public let configuration: Configuration
    let core: ClientCore

    public init(_ configuration: Configuration = .init()) {
        self.configuration = configuration
        core = ClientCore(configuration)
    }

    /// Pauses all transfers, waits until nothing of them is running any more, and closes all connections. Transfers
    /// that are started later fail.
    public func shutDown() async {
        await core.shutDown()
    }

    /// Prepares an upload of everything that `source` has.
    public func upload(_ request: TransferRequest, from source: any UploadSource) -> Upload {
        upload(request, from: source, store: nil)
    }

    /// The same, with a store for the checkpoints of this upload alone.
    package func upload(
        _ request: TransferRequest, from source: any UploadSource, store: (any CheckpointStore)?
    ) -> Upload {
        var plan = TransferPlan(request, from: source)
        plan.store = store
        return Upload(core: core, plan: plan)
    }

    /// Prepares an upload that sends what is missing. Nothing is used up by it: the data stays good until data of a later
    /// pause, error or checkpoint of the same upload has been used, or until the upload has ended.
    /// - Parameters:
    ///   - data: of an upload.
    ///   - source: with the same bytes as before; `nil` takes the file that the data names, if it belongs to the user or
    ///     to root.
    ///   - request: in place of the request that the data names; its fields go with every request to come.
    /// - Throws: `resumeDataInvalid`, `resumeDataUsed`, `noSuchSource`, `sourceChanged`. But for `resumeDataUsed` the
    ///   data can still be used. An upload that starts while another one runs with the same data, in any process, ends
    ///   with `resumeDataUsed`.
    public func resumeUpload(
        _ data: ResumeData, from source: (any UploadSource)? = nil, request: TransferRequest? = nil
    ) throws(TransferError) -> Upload {
        try resumeUpload(data, from: source, request: request, store: nil)
    }

    /// The same, with a store for the checkpoints of this upload alone.
    package func resumeUpload(
        _ data: ResumeData, from source: (any UploadSource)?, request: TransferRequest?, store: (any CheckpointStore)?
    ) throws(TransferError) -> Upload {
        try core.storage.examine(data)
        var plan = try TransferPlan(resuming: data, source: source, request: request)
        plan.store = store
        return Upload(core: core, plan: plan)
    }

    /// Forgets what `data` stands for: deletes the upload resource from the server, or the partial file of a download
    /// from the disk. One that is gone already is no error.
    /// - Parameter request: in place of the request that the data names; its fields and the user in its URI authorize
    ///   the deletion of an upload.
    /// - Returns: whether it is known to be deleted; `false`: the server does not know the upload any more, or not for
    ///   whom the request is authorized as.
    /// - Throws: where it could not be done; the data can be used then as before.
    @discardableResult
    public func discard(_ data: ResumeData, request: TransferRequest? = nil) async throws(TransferError) -> Bool {
        switch data.record.content {
        case .upload:
            return try await Upload(core: core, plan: TransferPlan(discarding: data, request: request)).discard()
        case .download(let record):
            let claim = try await core.claim(
                data.record.id, generation: data.record.generation, hasTicket: data.record.hasTicket)
            try core.storage.discard(record)
            claim?.remove()
            return true
        }
    }
}
