import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

extension UploadDriver {
    /// Sends one request, hands the machine everything that comes back, and at last how it ended.
    func perform(_ request: ClientRequest, isCancelling: Bool) async throws(TransferError) {
        if request.content.bearsBytes, let source = plan.source as? any RecognizableSource, !source.isUnchanged {
            // Nothing more is sent of it; the machine gives the upload up.
            return machine.sourceFailed(at: request.content.start)
        }
        let outgoing = try await outgoingRequest(for: request)
        guard let base = RequestURI(outgoing.uri) else {
            throw TransferError(.invalidRequest, "The URI of the request is no absolute one of http or https.")
        }
        if let field = outgoing.fields.firstInvalid {
            throw TransferError(.invalidRequest, "The field \(field.name) cannot be sent.")
        }
        lastBase = base
        requests += 1
        if request.kind == .append {
            let start = request.content.bearsBytes ? request.content.start : machine.acknowledged
            // Also where the server refused the offset and told another one.
            if isResuming || start < position { control.events.send(.resumed(at: start)) }
            isResuming = false
        }
        if request.content.bearsBytes { position = request.content.start }
        observe(request, outgoing)
        isAnnounced = false
        let exchange = core.engine.start(
            transportRequest(for: request, outgoing, uri: base.text, isCancelling: isCancelling))
        var isAborted = false
        let result: TransportResult
        if isCancelling {
            isAborted = await follow(exchange, of: request, from: base)
            result = await exchange.result()
        } else {
            (isAborted, result) = await control.interruptible(
                by: { exchange.cancel() },
                while: { (await follow(exchange, of: request, from: base), await exchange.result()) })
        }
        sent += result.sent
        take(result, of: request, from: base, isAborted: isAborted)
        learn(from: result, to: request)
        plan.source.acknowledged(upTo: machine.acknowledged)
        await keepCheckpoint()
        tellProgress(sent: max(position, machine.acknowledged), acknowledged: machine.acknowledged)
    }

    /// Hands over what comes while the exchange goes on.
    /// - Returns: whether the machine ended it.
    private func follow(_ exchange: TransportExchange, of request: ClientRequest, from base: RequestURI) async -> Bool {
        var isAborted = false
        for await event in exchange.events {
            switch event {
            case .interim(let head) where !isAborted:
                if head.status == .uploadResumptionSupported { isAnnounced = true }
                let before = machine.acknowledged
                let reaction = machine.interim(uploadHead(head, base), now: SystemClock.realtimeSeconds())
                // Bytes may be on their way behind a proxy that has taken all of them.
                if machine.acknowledged > before { exchange.noteProgress() }
                observe(head, of: request, from: base)
                control.events.send(.informational(head.status, head.fields))
                plan.source.acknowledged(upTo: machine.acknowledged)
                await keepCheckpoint()
                switch reaction {
                case .proceed: break
                case .openGate: exchange.openGate()
                case .abort:
                    isAborted = true
                    exchange.cancel()
                }
            case .interim: break
            case .head(let head): observe(head, of: request, from: base)
            case .sent(let count):
                guard request.content.bearsBytes else { break }
                position = request.content.start + count
                tellProgress(sent: max(position, machine.acknowledged), acknowledged: machine.acknowledged)
            case .received: break
            }
        }
        return isAborted
    }

    /// Tells the machine how the exchange ended.
    private func take(
        _ result: TransportResult, of request: ClientRequest, from base: RequestURI, isAborted: Bool
    ) {
        if request.content.bearsBytes { position = request.content.start + result.sent }
        if let head = result.head, !isAborted {
            response = TransferResponse(status: head.status, fields: head.fields, content: result.content)
            let parsed = uploadHead(head, base)
            lastLocation = parsed.location
            lastFailure = nil
            return machine.responded(
                parsed, sent: result.sent, sourceEnded: result.sourceEnded,
                problem: ProblemType(content: result.content, fields: head.fields),
                now: SystemClock.realtimeSeconds())
        }
        let failure = result.failure ?? .connectionLost(code: 0, message: "no response")
        lastFailure = isAborted ? nil : TransferError(failure, asking: base)
        if case .sourceFailed(let offset, _) = failure { return machine.sourceFailed(at: offset) }
        machine.interrupted(UploadInterruption(failure), sent: result.sent, sourceEnded: result.sourceEnded)
    }

    /// Remembers what the next upload to the same server need not find out again.
    private func learn(from result: TransportResult, to request: ClientRequest) {
        guard let target = RequestURI(plan.request.uri) else { return }
        if request.kind == .create, isAnnounced { core.servers.noteCreation(target, isAnnounced: true) }
        if request.kind == .create, request.awaitsInterim, !isAnnounced, result.head?.status.isSuccessful == true {
            core.servers.noteCreation(target, isAnnounced: false)
        }
        if let isSupported = machine.supportsResumption { core.servers.noteSupport(target, isSupported) }
        if let limits = machine.resumption?.limits { core.servers.noteLimits(target, limits) }
    }

    private func uploadHead(_ head: TransportHead, _ base: RequestURI) -> UploadResponseHead {
        let locations = head.fields.values("Location")
        return UploadResponseHead(
            status: head.status, fields: head.fields,
            location: locations.count == 1 ? base.location(locations[0]) : nil)
    }

    // MARK: Requests

    private func outgoingRequest(for request: ClientRequest) async throws(TransferError) -> TransferRequest {
        let uri =
            switch request.resource {
            case .target: plan.request.uri
            case .upload(let uri), .other(let uri): uri
            }
        let own = plan.request.fields.fieldsOfEveryRequest
        let fields = core.configuration.fields.merging(own).merging(request.fields)
        do {
            return try await core.outgoing(
                TransferRequest(uri, method: request.method, fields: fields),
                carriesCredentials: request.carriesCredentials, target: plan.request.uri, control: control
            ) { $0.method = request.method }
        } catch {
            throw stopError ?? error
        }
    }

    /// What an error that came of a wish to stop really means.
    private var stopError: TransferError? {
        switch control.stop {
        case .pause: TransferError(.paused, "The upload was paused.")
        case .cancel(deleting: false): TransferError(.cancelled, "The upload was cancelled.")
        case .cancel(deleting: true), nil: nil
        }
    }

    private func awaitsInterim(_ request: ClientRequest) -> Bool {
        guard request.awaitsInterim, let target = RequestURI(plan.request.uri) else { return request.awaitsInterim }
        return core.servers.awaitsInterim(target, length: plan.length)
    }

    private func transportRequest(
        for request: ClientRequest, _ outgoing: TransferRequest, uri: String, isCancelling: Bool
    ) -> TransportRequest {
        let configuration = core.configuration
        // Somebody waits for the deletion.
        let patience = Duration.seconds(30)
        let content: TransportContent? =
            switch request.content {
            case .none: nil
            case .empty: TransportContent(source: plan.source, start: 0, count: 0, atMost: nil)
            case .range(let start, let count):
                TransportContent(source: plan.source, start: start, count: count, atMost: nil)
            case .remaining(let start, let most):
                TransportContent(source: plan.source, start: start, count: nil, atMost: most)
            }
        return TransportRequest(
            method: outgoing.method.rawValue, uri: uri, fields: outgoing.fields, content: content,
            gate: awaitsInterim(request) ? configuration.gate : nil,
            stallTimeout: isCancelling
                ? min(configuration.stallTimeout ?? patience, patience) : configuration.stallTimeout,
            rateLimit: configuration.rateLimit, settings: TransportSettings(configuration),
            receive: { .answer($0) })
    }

    // MARK: The observer

    private func observe(_ request: ClientRequest, _ outgoing: TransferRequest) {
        guard let observer = core.configuration.observer else { return }
        let shown = RequestURI(outgoing.uri)?.description(hidingPath: request.resource != .target) ?? ""
        observer(
            TransferRecord(.request(request.method, uri: shown), fields: outgoing.fields.hidingSecrets()))
    }

    private func observe(_ head: TransportHead, of request: ClientRequest, from base: RequestURI) {
        guard let observer = core.configuration.observer else { return }
        let upload = machine.resumption?.uri
        let locations = head.fields.values("Location").map { base.resolving($0)?.text }
        // An upload resource that the machine has not taken, or not yet, is one all the same.
        let isApplications =
            !head.status.isInformational && core.configuration.dialect.completeness(of: head.fields) == true
            && !locations.contains(upload)
        let names: Set<String> = isApplications ? [] : ["location"]
        observer(
            TransferRecord(
                .response(head.status, version: head.httpVersion), fields: head.fields.hidingSecrets(names)))
    }
}

extension UploadInterruption {
    init(_ failure: TransportFailure) {
        self =
            switch failure {
            case .proxy(let proxy) where proxy.isPermanent: .unusableConnection
            case .stalled, .proxy(.stalled): .stall
            case .resolve, .connect, .connectStalled, .proxy: .unreachable
            case .connectionLost, .cancelled, .sourceFailed, .sinkFailed: .connection
            case .tls, .invalidRequest, .unsupportedURI, .tooManyRedirects, .protocolViolation: .unusableConnection
            }
    }
}

extension ClientRequest.Content {
    /// Where in the representation the content starts; 0 where there is none.
    var start: Int64 {
        switch self {
        case .none, .empty: 0
        case .range(let start, _), .remaining(let start, _): start
        }
    }

    /// Whether bytes of the source are sent.
    var bearsBytes: Bool {
        switch self {
        case .none, .empty: false
        case .range, .remaining: true
        }
    }
}

extension Fields {
    /// Of a caller's fields, those of the request that creates the upload alone.
    var creationFields: Fields {
        Fields(
            filter { Fields.belongsToCreation($0.name) && !Fields.belongsToTransfer($0.name) }
                .map { ($0.name, $0.value) })
    }

    /// Of a caller's fields, those of every request.
    var fieldsOfEveryRequest: Fields {
        Fields(
            filter { !Fields.belongsToCreation($0.name) && !Fields.belongsToTransfer($0.name) }
                .map { ($0.name, $0.value) })
    }
}

extension BodyDisposition {
    /// The answer of the target may be of use to the caller. Of a refusal the first words are enough.
    fileprivate static func answer(_ head: TransportHead) -> BodyDisposition {
        head.status.isSuccessful ? .collect(limit: 1 << 20, within: .seconds(300)) : .refusal
    }

    /// The content of a response whose head has decided.
    static let refusal = BodyDisposition.collect(limit: 64 << 10, within: .seconds(5))
}
