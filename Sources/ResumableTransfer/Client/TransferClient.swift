import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// Uploads and downloads that resume where they were interrupted.
///
/// All transfers of a client share one thread for their connections. A transfer keeps its client alive.
public final class TransferClient: Sendable {
    /// The configuration of all transfers of this client.
    public let configuration: Configuration
    let engine = TransportEngine()
    let storage: TransferStorage
    let servers = ServerTraits()

    private struct State {
        var isShutDown = false
        var running: [ObjectIdentifier: any Transfer] = [:]
    }

    private let state = Monitor(State())

    /// Creates a client with a thread for its connections.
    public init(_ configuration: Configuration = .init()) {
        self.configuration = configuration
        storage = TransferStorage(path: configuration.storagePath)
    }

    deinit { engine.shutDown() }

    /// Pauses all transfers, waits until nothing of them is running any more, and closes all connections. Transfers
    /// that are started later fail.
    public func shutDown() async {
        let running = state.withLock { state in
            state.isShutDown = true
            return Array(state.running.values)
        }
        for transfer in running { _ = await transfer.pause() }
        let engine = engine
        await BlockingWork.run { engine.shutDown() }
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
        return Upload(client: self, plan: plan)
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
        try storage.examine(data)
        var plan = try TransferPlan(resuming: data, source: source, request: request)
        plan.store = store
        return Upload(client: self, plan: plan)
    }

    /// Discards the transfer of `data`: deletes the upload resource from the server, or the partial file of a download
    /// from the disk. One that is gone already is no error.
    /// - Parameter request: in place of the request that the data names; its fields and the user in its URI authorize
    ///   the deletion of an upload.
    /// - Returns: whether it is known to be deleted; `false`: the server does not know the upload any more, or not for
    ///   whom the request is authorized as.
    /// - Throws: if it could not be done; the data can be used then as before.
    @discardableResult
    public func discard(_ data: ResumeData, request: TransferRequest? = nil) async throws(TransferError) -> Bool {
        switch data.record.content {
        case .upload:
            return try await Upload(client: self, plan: TransferPlan(discarding: data, request: request)).discard()
        case .download(let checkpoint):
            let claim = try await claim(
                data.record.id, generation: data.record.generation, hasTicket: data.record.hasTicket)
            try storage.discard(checkpoint)
            claim?.remove()
            return true
        }
    }

    // MARK: For transfers

    /// Notes a transfer that starts. False: it must not, for the client was shut down.
    func enter(_ transfer: any Transfer) -> Bool {
        state.withLock { state in
            if state.isShutDown { return false }
            state.running[ObjectIdentifier(transfer)] = transfer
            return true
        }
    }

    func leave(_ transfer: ObjectIdentifier) {
        _ = state.withLock { $0.running.removeValue(forKey: transfer) }
    }

    /// Claims a transfer: one that is resumed before anything else is done for it, a new upload before its first checkpoint
    /// is handed out.
    func claim(
        _ id: UUID, generation: Int, hasTicket: Bool, createsFile: Bool = false
    ) async throws(TransferError) -> TicketClaim? {
        guard hasTicket || configuration.issuesTickets else { return nil }
        let storage = storage
        return try await BlockingWork.run {
            Result { () throws(TransferError) in
                try storage.claim(
                    ResumeTicket(id: id, generation: generation), hasTicket: hasTicket, createsFile: createsFile)
            }
        }.get()
    }

    /// The ticket of data that is about to be issued; `nil` for data without one.
    func issueTicket(for id: UUID, generation: Int) -> ResumeTicket? {
        configuration.issuesTickets ? storage.issueTicket(for: id, generation: generation) : nil
    }
}

extension TransferClient {
    /// Asks once: nothing is sent again, no redirection is followed.
    /// - Parameter request: its method has no content, such as GET.
    /// - Returns: whatever final response comes, with up to 64 KiB of its content.
    package func fetch(_ request: TransferRequest) async throws(TransferError) -> TransferResponse {
        guard let uri = RequestURI(request.uri) else {
            throw TransferError(.invalidRequest, "The request URI must be an absolute http or https URI.")
        }
        let exchange = engine.start(
            TransportRequest(
                message: TransferRequest(
                    uri.text, method: request.method, fields: configuration.fields.merging(request.fields)),
                stallTimeout: configuration.stallTimeout, settings: TransportSettings(configuration),
                receive: { _ in .collect(limit: 64 << 10, within: .seconds(30)) }))
        let result = await exchange.result()
        if let failure = result.failure { throw TransferError(failure, asking: uri) }
        guard let head = result.head else { throw TransferError(.connectionLost, "There was no response.") }
        return TransferResponse(status: head.status, fields: head.fields, content: result.content)
    }
}

extension TransferClient {
    /// A request as it goes out: with credentials to the origin alone that the caller named, and with what `authorize` adds
    /// there.
    ///
    /// - Parameters:
    ///   - target: what the caller named. Redirections and resume data may lead to another origin.
    ///   - restore: sets what `authorize` may not change.
    /// - Throws: `authorizationFailed` if `authorize` fails, or is canceled because the transfer was asked to stop.
    func outgoing<Value>(
        _ request: TransferRequest, carriesCredentials: Bool, target: String, control: TransferControl<Value>,
        restore: (inout TransferRequest) -> Void
    ) async throws(TransferError) -> TransferRequest {
        var outgoing = request
        guard carriesCredentials, let target = RequestURI(target),
            RequestURI(request.uri)?.hasSameOrigin(as: target) == true
        else {
            outgoing.fields.remove("Host")
            outgoing.fields = outgoing.fields.withoutSecrets
            return outgoing
        }
        if let credentials = target.basicCredentials, !outgoing.fields.contains("Authorization") {
            outgoing.fields.append("Authorization", credentials)
        }
        guard let authorize = configuration.authorize else { return outgoing }
        let task = Task { [outgoing] in
            var authorized = outgoing
            try await authorize(&authorized)
            return authorized
        }
        switch await control.interruptible(by: { task.cancel() }, while: { await task.result }) {
        case .success(var authorized):
            restore(&authorized)
            return authorized
        case .failure(let failure):
            throw TransferError(
                .authorizationFailed, "The request could not be authorized.", underlying: "\(failure)")
        }
    }
}
