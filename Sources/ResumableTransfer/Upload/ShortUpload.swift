import HTTPSemantics
import HTTPTransport
import ResumableUpload
import SystemCalls

/// The request that creates the upload of a short file and sends its content, made without a transfer: the task, the
/// events and the progress of a transfer need more time than such a request. If it does not complete the upload, a
/// transfer continues after it.
package struct ShortUpload: Sendable {
    package enum Outcome: Sendable {
        case completed(UploadResult)
        /// A transfer that has not started, and handles the end of the request as that of its own first one.
        /// - `isStopped`: whether ``cancel()`` has ended the request. The transfer then ends as paused, and sends nothing.
        case unfinished(Upload, isStopped: Bool)
    }

    private let client: TransferClient
    private let plan: TransferPlan<UploadOperation>
    private let started: UploadExchange
    private let exchange: TransportExchange

    fileprivate init(
        _ client: TransferClient, _ plan: TransferPlan<UploadOperation>, _ started: UploadExchange,
        _ exchange: TransportExchange
    ) {
        self.client = client
        self.plan = plan
        self.started = started
        self.exchange = exchange
    }

    /// Stops the upload unless it has ended. Any thread can call this at any time.
    package func cancel() { exchange.cancel() }

    /// Waits for the end of the request.
    /// - Parameter store: saves the checkpoint when the server has announced the upload resource. The content is sent after
    ///   that, or after ``TransferClient/Configuration/interimResponseTimeout``.
    package func outcome(store: any CheckpointStore) async -> Outcome {
        var ended = started
        var saved: UploadCheckpoint?
        for await case .interim(let head) in exchange.events where !ended.isAborted {
            let reaction = ended.receive(head, of: exchange)
            if let checkpoint = ended.checkpoint, saved.map({ checkpoint.supersedes($0, age: 0) }) ?? true,
                let data = plan.data(of: checkpoint)
            {
                saved = checkpoint
                // Content may have been sent before this response.
                await store.save(data, sent: nil)
            }
            switch reaction {
            case .proceed: break
            case .openGate: exchange.openGate()
            case .abort:
                ended.isAborted = true
                exchange.cancel()
            }
        }
        ended.result = await exchange.result()
        if let result = ended.success(client.servers) { return .completed(result) }
        var plan = plan
        plan.input.firstExchange = ended
        let upload = Upload(TransferParts(client, plan, store: store))
        guard case .canceled? = ended.result.failure, !ended.isAborted else {
            return .unfinished(upload, isStopped: false)
        }
        upload.requestPause()
        return .unfinished(upload, isStopped: true)
    }
}

extension TransferClient {
    /// Sends the request that creates the upload of a short file, if the server has announced the upload resource of the
    /// last upload to its origin (104).
    /// - Returns: `nil` if the upload needs a transfer.
    package func beginShortUpload(_ request: TransferRequest, from file: FileSource) async -> ShortUpload? {
        let plan = TransferPlan(request, from: file)
        guard (1...ClientRequest.maxSizeAtOnce).contains(file.status.size), let uri = plan.target,
            servers.announcesUploads(uri) == true, request.hasValidDigests, !configuration.sendsDigest,
            configuration.maxTransfers == nil, configuration.onMessage == nil, configuration.onMetrics == nil,
            configuration.onLogEntry == nil, configuration.rateLimit == nil, credentials == nil,
            let source = try? file.record()
        else { return nil }
        var machine = UploadOperation.machine(for: plan, self, fields: plan.creationFields)
        guard case .send(let creation) = machine.next(now: SystemClock.realtimeSeconds()), creation.awaitsInterim,
            var transport = try? await transportRequest(
                TransferRequest(
                    request.uri, method: creation.method,
                    fields: request.fields.fieldsOfEveryRequest.merging(creation.fields)),
                to: uri, receive: { .answer($0) }),
            !creation.isSentAtOnce(with: transport.fields), transport.fields.firstInvalid == nil
        else { return nil }
        transport.content = creation.content
        transport.source = file
        transport.gate = configuration.interimResponseTimeout
        return ShortUpload(
            self, plan, UploadExchange(request: creation, uri: uri, machine: machine, source: source),
            engine.start(transport))
    }
}

/// An exchange that creates an upload and sends its content, and the state of the upload during the exchange.
struct UploadExchange: Sendable {
    let request: ClientRequest
    let uri: RequestURI
    /// The state of the upload. It includes the interim responses, but not the result.
    private(set) var machine: ClientUpload
    let source: SourceRecord
    var result = TransportResult(.canceled)
    /// Whether the exchange was aborted because of an interim response.
    var isAborted = false
    /// Whether a 104 was received.
    private(set) var isAnnounced = false

    init(request: ClientRequest, uri: RequestURI, machine: ClientUpload, source: SourceRecord) {
        self.request = request
        self.uri = uri
        self.machine = machine
        self.source = source
    }

    mutating func receive(_ interim: ClientResponseHead, of exchange: TransportExchange) -> InterimReaction {
        if interim.status == .uploadResumptionSupported { isAnnounced = true }
        return machine.interim(interim, of: exchange)
    }

    var checkpoint: UploadCheckpoint? { machine.resumption.map { UploadCheckpoint(resumption: $0, source: source) } }

    /// The result of the upload, if the exchange has completed it.
    fileprivate func success(_ servers: ServerTraits) -> UploadResult? {
        guard let head = result.head, head.status.isSuccessful, result.failure == nil, !isAborted,
            result.sent == request.content.count
        else { return nil }
        var machine = machine
        let now = SystemClock.realtimeSeconds()
        machine.responded(head, sent: result.sent, hasSourceEnded: result.hasSourceEnded, problem: nil, now: now)
        guard case .finished(let outcome) = machine.next(now: now) else { return nil }
        servers.noteCreation(uri, isAnnounced: isAnnounced)
        return UploadResult(
            outcome, content: result.content, from: uri, uploadURI: machine.resumption?.uri, sent: result.sent,
            acknowledged: result.sent, requests: 1)
    }
}
