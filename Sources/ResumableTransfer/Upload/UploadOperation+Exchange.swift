import HTTPTransport
import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

extension UploadOperation {
    func canSend(_ request: ClientRequest) async -> Bool {
        // After an interruption, a server need not wait on a new connection for a source that is slow.
        if request.kind == .append, request.content.hasBytes, let source = source as? any GrowingSource,
            await !driver.control.wait(until: { source.isReadable(at: request.content.start, orCall: $0) })
        {
            return false
        }
        guard request.content.hasBytes, !isSourceUnchanged else { return true }
        // Nothing more of the source is sent; the machine ends the upload.
        machine.sourceFailed(at: request.content.start)
        return false
    }

    var callerFields: Fields { driver.plan.request.fields.fieldsOfEveryRequest }

    func restore(_ authorized: inout TransferRequest, for request: ClientRequest) {
        authorized.method = request.method
    }

    func willSend(_ request: ClientRequest, to uri: RequestURI) {
        lastURI = uri
        isAnnounced = false
        if request.kind == .append {
            let start = request.content.hasBytes ? request.content.start : machine.acknowledged
            // The resumption is also reported if the server has refused the offset and reported another one.
            if driver.isResuming || start < position { driver.reportResumption(at: start) }
            driver.isResuming = false
        }
        guard request.content.hasBytes else { return }
        position = request.content.start
        // The rate includes the time before the first byte.
        driver.progress.note(transferred: sent)
    }

    func complete(_ transport: inout TransportRequest, for request: ClientRequest) {
        let configuration = driver.client.configuration
        transport.source = source
        shouldAwaitInterim = request.shouldAwaitInterim && !request.isSentAtOnce(with: transport.fields)
        transport.gate = shouldAwaitInterim && canBeAnnounced ? configuration.interimResponseTimeout : nil
        if isDeleting {
            // The caller waits for the deletion, so the timeout is at most 30 seconds.
            transport.stallTimeout = min(driver.connection.stallTimeout ?? .seconds(30), .seconds(30))
        }
        transport.receive = { .answer($0) }
    }

    /// Whether the content has to wait for a 104: this server may send one, or the content is large.
    private var canBeAnnounced: Bool {
        driver.plan.target.map { driver.client.servers.shouldAwaitInterim($0, length: length) } ?? true
    }

    // MARK: Responses

    func interim(_ head: ClientResponseHead, _ exchange: TransportExchange) -> InterimReaction {
        if head.status == .uploadResumptionSupported { isAnnounced = true }
        let before = machine.acknowledged
        let reaction = machine.interim(head, now: SystemClock.realtimeSeconds())
        // A proxy may have received all bytes and still be sending them to the server.
        if machine.acknowledged > before { exchange.noteProgress() }
        return reaction
    }

    func handle(
        _ event: TransportEvent, of request: ClientRequest, _ exchange: TransportExchange
    ) async {
        switch event {
        case .interim:
            uploadURI = machine.resumption?.uri ?? uploadURI
            source.acknowledged(upTo: machine.acknowledged)
            await driver.keepCheckpoint()
        case .sent(let count) where request.content.hasBytes:
            driver.progress.note(transferred: sent + count)
            position = request.content.start + count
            reportProgress()
            // Saving the position in short content would take longer than sending it again.
            if request.content.exceeds(ClientRequest.maxSizeAtOnce) { await driver.savePosition() }
        case .sent, .head, .received: break
        }
    }

    func ended(
        _ result: TransportResult, of request: ClientRequest, from uri: RequestURI, isAborted: Bool
    ) async throws(TransferError) {
        sent += result.sent
        driver.progress.note(transferred: sent)
        report(result, of: request, from: uri, isAborted: isAborted)
        noteTraits(from: result, to: request)
        uploadURI = machine.resumption?.uri ?? uploadURI
        source.acknowledged(upTo: machine.acknowledged)
        // After the response of the target there is nothing to resume, and `finish` reports the progress.
        if machine.isFinished { return }
        await driver.keepCheckpoint()
        reportProgress()
    }

    /// Reports the end of the exchange to the machine.
    private func report(
        _ result: TransportResult, of request: ClientRequest, from uri: RequestURI, isAborted: Bool
    ) {
        if request.content.hasBytes { position = request.content.start + result.sent }
        if let head = result.head, !isAborted {
            driver.response = TransferResponse(head, content: result.content)
            driver.lastFailure = nil
            return machine.responded(
                head, sent: result.sent, hasSourceEnded: result.hasSourceEnded,
                problem: ProblemType(content: result.content, fields: head.fields),
                now: SystemClock.realtimeSeconds())
        }
        let failure = result.failure ?? .connectionLost(code: 0, message: "no response")
        driver.lastFailure = isAborted ? nil : TransferError(failure, requestURI: uri)
        if case .sourceFailed(let offset, let error) = failure {
            sourceError = error
            return machine.sourceFailed(at: offset)
        }
        machine.interrupted(failure.interruption, sent: result.sent, hasSourceEnded: result.hasSourceEnded)
    }

    /// Notes properties of the server for later uploads.
    private func noteTraits(from result: TransportResult, to request: ClientRequest) {
        guard let target = driver.plan.target else { return }
        let servers = driver.client.servers
        if request.kind == .create, isAnnounced { servers.noteCreation(target, isAnnounced: true) }
        if request.kind == .create, shouldAwaitInterim, !isAnnounced, result.head?.status.isSuccessful == true {
            servers.noteCreation(target, isAnnounced: false)
        }
        if let isSupported = machine.isResumptionSupported { servers.noteSupport(target, isSupported) }
        if let limits = machine.resumption?.limits { servers.noteLimits(target, limits) }
    }

    func shownFields(of head: ClientResponseHead, from uri: RequestURI) -> Fields {
        let upload = machine.resumption?.uri
        let locations = head.fields.values("Location").map { uri.resolving($0)?.text }
        // Location is also hidden if it names an upload resource that the machine has not accepted or not yet handled.
        let isOfApplication =
            !head.status.isInformational && driver.client.configuration.dialect.completeness(of: head.fields) == true
            && !locations.contains(upload)
        return head.fields.hidingSecrets(isOfApplication ? [] : ["location"])
    }
}

extension Fields {
    /// The fields of the caller that only the request that creates the upload has.
    var creationFields: Fields {
        Fields(
            filter { Fields.belongsToCreation($0.name) && !Fields.belongsToTransfer($0.name) }
                .map { ($0.name, $0.value) })
    }

    /// The fields of the caller that every request has.
    var fieldsOfEveryRequest: Fields {
        Fields(
            filter { !Fields.belongsToCreation($0.name) && !Fields.belongsToTransfer($0.name) }
                .map { ($0.name, $0.value) })
    }
}

extension BodyDisposition {
    /// The response can be that of the target, which callers get completely.
    static func answer(_ head: ClientResponseHead) -> BodyDisposition {
        .collect(limit: 1 << 20, within: .seconds(head.status.isSuccessful ? 300 : head.status.isTransient ? 5 : 30))
    }

    /// The disposition of a response whose head is sufficient. Its content only describes the problem.
    static let refusal = BodyDisposition.collect(limit: 64 << 10, within: .seconds(5))
}

extension ProblemType {
    /// The problem that the content of a response describes (RFC 9457); `nil` for any other content.
    init?(content: [UInt8], fields: Fields) {
        guard let type = fields["Content-Type"].flatMap({ MediaType(parsing: $0) }),
            type.essence == ProblemDetails.mediaType, content.count <= 64 << 10,
            let document = try? JSONDecoder().decode(Document.self, from: Data(content))
        else { return nil }
        self.init(type: document.type ?? "about:blank", expectedOffset: document.expectedOffset?.value)
    }

    private struct Document: Decodable {
        var type: String?
        var expectedOffset: Offset?

        private enum CodingKeys: String, CodingKey {
            case type
            case expectedOffset = "expected-offset"
        }
    }

    /// A member of another type than expected is ignored (RFC 9457 section 3.1).
    private struct Offset: Decodable {
        let value: Int64?

        init(from decoder: any Decoder) throws {
            let number = try? decoder.singleValueContainer().decode(Int64.self)
            value = number.flatMap { (0...UploadLimits.largestInteger).contains($0) ? $0 : nil }
        }
    }
}
