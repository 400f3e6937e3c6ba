import HTTPSemantics
import ResumableUpload
import SystemCalls
import UploadStorage

/// Stores the content of one creation, append or plain upload, and responds at its end.
final class UploadExchange: Exchange {
    /// The context of the exchange.
    struct Context {
        let service: TransferService
        let request: RequestContext
        let identity: Identity
        let responses: UploadResponses
        /// The upload as it was stored at creation.
        let upload: NewUpload
        let route: HandlerRoute
        let target: Target
    }

    /// The kind of the request that is handled.
    enum Kind {
        /// A request that does not use the upload protocol.
        case plain
        /// - Parameters:
        ///   - location: the location of the upload resource; `nil` if there is no upload resource.
        ///   - isAnnounced: whether a 104 response with the location was sent, or will be before the response.
        case creation(location: String?, isAnnounced: Bool)
        case append
        /// A retrieval that completes an upload whose content is complete.
        case retrieval
    }

    let context: Context
    let lease: UploadLease
    let kind: Kind
    private var counter: ContentCounter
    private var pace: AcknowledgmentPace
    private let contentDigest: DigestField?
    private var isProcessing = false
    /// Whether the upload was removed, because its client does not know its URL.
    private var isRemoved = false
    /// Whether another request, perhaps to another server, may have reported a later offset.
    private var isTakenOver = false
    /// The 104 response of a creation whose content has arrived completely. It is sent immediately before the final
    /// response, because other servers cannot find the upload earlier, and a client must be able to use the URL at any
    /// server. The client does not need the URL earlier, because it has nothing more to send.
    private var announcement: ResponseHead?

    private init(
        _ context: Context, lease: UploadLease, plan: ContentPlan, kind: Kind, announcement: ResponseHead? = nil
    ) {
        self.context = context
        self.lease = lease
        self.kind = kind
        self.announcement = announcement
        counter = ContentCounter(plan)
        pace = AcknowledgmentPace(
            start: plan.start, now: SystemClock.monotonicNanoseconds(),
            maxReports: InterimAllowance.offsets(for: context.request.fields))
        let fields = context.request.fields
        contentDigest =
            fields.contains("Content-Digest") ? DigestField(fieldLines: fields.values("Content-Digest")) : nil
    }

    /// Prepares the lease for the content that the plan expects.
    /// - Throws: only `superseded`, if another request has taken the upload over.
    static func begin(
        _ context: Context, lease: UploadLease, plan: ContentPlan, kind: Kind, announcement: ResponseHead? = nil
    ) throws(StoreError) -> RequestStep {
        let exchange = UploadExchange(context, lease: lease, plan: plan, kind: kind, announcement: announcement)
        context.request.explanation?.progressObstacle = exchange.progressObstacle
        do throws(StoreError) {
            if plan.isLengthDetermined, let length = plan.length { try lease.setLength(length) }
            // Bytes are not acknowledged before their digest was compared.
            if let digest = exchange.contentDigest {
                try lease.beginStaging(digests: Set(digest.values.map(\.algorithm)))
            }
            // A request without content is complete here, so other requests must not end it from now on.
            if exchange.isCompletelyReceived && exchange.contentDigest == nil { try exchange.beginProcessing() }
            return .receive(exchange)
        } catch {
            lease.release()
            if exchange.isUnreachable { exchange.remove() }
            if case .superseded = error { throw error }
            return .respond(exchange.failed(error))
        }
    }

    private var progressObstacle: UploadExplanation.ProgressObstacle? {
        let dialect = context.responses.dialect
        if !dialect.hasProgressResponses, let version = dialect.interopVersion { return .version(version) }
        return contentDigest == nil ? nil : .contentDigest
    }

    private var request: RequestContext { context.request }

    // MARK: Content

    func receive(_ bytes: UnsafeRawBufferPointer) -> RequestStep? {
        guard let step = store(bytes) else { return nil }
        lease.release()
        announce(before: step)
        return step
    }

    private func announce(before step: RequestStep) {
        guard let head = announcement, case .respond = step, lease.isFindable, !isRemoved else { return }
        announcement = nil
        request.announce(head, isFollowed: true)
    }

    // If the storage fails, the client gets a response although it sends nothing. The interval is a second, because
    // many clients can pause at the same time.
    var checkInterval: Int32? { lease.canFail ? 1000 : nil }
    // This is also true if bytes have to become durable while the client pauses: ``check()`` starts the
    // synchronization.
    var hasEarlyResponse: Bool { lease.canFail && (!lease.isCurrent || isAcknowledgmentDue) }

    func check() -> RequestStep? {
        guard lease.canFail else { return nil }
        guard lease.isCurrent else {
            defer { lease.release() }
            return step(for: .superseded)
        }
        if isAcknowledgmentDue {
            pace.acknowledgmentBegins(received: lease.received, now: SystemClock.monotonicNanoseconds())
            lease.startAcknowledging()
        }
        return nil
    }

    private var isAcknowledgmentDue: Bool {
        let now = SystemClock.monotonicNanoseconds()
        return lease.id != nil && pace.isOverdue(received: lease.received, durable: lease.acknowledged, now: now)
    }

    private func store(_ bytes: UnsafeRawBufferPointer) -> RequestStep? {
        switch counter.receive(bytes.count) {
        case .accept: break
        case .exceedsLength(let length): return invalidate(.lengthExceeded(length: length))
        case .exceedsMaxSize(let limit): return invalidate(.uploadTooLarge(limit: limit))
        case .exceedsMaxContent(let limit, let accepted):
            do throws(StoreError) {
                if accepted > 0 { try lease.append(UnsafeRawBufferPointer(rebasing: bytes.prefix(accepted))) }
            } catch {
                return step(for: error)
            }
            acknowledgeForRefusal()
            return .respond(refused(.appendTooLarge(limit: limit)))
        }
        do {
            let completes = isCompletelyReceived
            try lease.append(bytes, completes: completes)
            if contentDigest == nil && !continueAcknowledgment() { return .drop }
            if completes && contentDigest == nil { try beginProcessing() }
            return nil
        } catch {
            return step(for: error)
        }
    }

    /// Makes received content durable while more is received, and reports durable offsets to the client.
    ///
    /// - Returns: false if nothing more may be written to the connection.
    private func continueAcknowledgment() -> Bool {
        let now = SystemClock.monotonicNanoseconds()
        if pace.shouldAcknowledge(received: lease.received, now: now) {
            lease.startAcknowledging()
            context.service.metrics.count(received: counter.received, of: request)
        }
        guard lease.id != nil else { return true }
        guard context.responses.isInterimResponseAllowed else { return true }
        let durable = lease.acknowledged
        if pace.shouldReport(durable: durable, now: now), let head = context.responses.progress(offset: durable) {
            // A client that does not read misses the response.
            switch request.interim.send(head, timeout: 0) {
            case .sent: request.explanation?.offsets += 1
            case .notWritable: request.explanation?.unwritable += 1
            case .broken: return false
            }
        }
        return true
    }

    /// Makes received content durable, because an error response has the offset at which an append would be accepted.
    /// If this fails, the previous offset is still valid, unless another request has taken the upload over.
    private func acknowledgeForRefusal() {
        guard lease.id != nil else { return }
        do throws(StoreError) { _ = try lease.acknowledge() } catch { isTakenOver = error == .superseded }
    }

    /// Whether all content of a completing request has arrived. Other requests then wait for this request, and do not
    /// end it.
    private var isCompletelyReceived: Bool {
        guard case .complete = counter.end() else { return false }
        switch request.framing {
        case .none: return true
        case .length(let length): return counter.received == length
        case .chunked: return false
        }
    }

    private func beginProcessing() throws(StoreError) {
        guard !isProcessing else { return }
        try lease.beginProcessing(shouldMarkDurably: !context.route.handler.isCompletionRepeatable)
        isProcessing = true
    }

    /// Ends the processing without a final response. The upload remains, with all its bytes, if its client knows its URL.
    private func stopProcessing() throws(StoreError) {
        if lease.id != nil { _ = try lease.acknowledge() }
        if isProcessing { lease.endProcessing() }
        isProcessing = false
        if case .creation(_, isAnnounced: false) = kind { remove() }
    }

    /// Removes an unfinished upload whose client does not know its URL.
    private func remove() {
        guard let id = lease.id, !isRemoved else { return }
        lease.release()
        // Only an upload that has got a URL was reported.
        _ = try? context.service.store.cancel(id, principal: context.identity.principal, isReported: !isUnreachable)
        isRemoved = true
    }

    /// Whether no response contains the URL of the upload, so it cannot be continued.
    private var isUnreachable: Bool { if case .creation(location: nil, _) = kind { true } else { false } }

    /// The offset for an error response; `nil` if it cannot be reported.
    private var reportableOffset: Int64? { isRemoved || isTakenOver ? nil : lease.reportableOffset }

    // MARK: End of the content

    func finish() -> RequestStep {
        let step = endContent()
        // The lease is released before the response is sent, so that a later request does not close this connection.
        lease.release()
        announce(before: step)
        return step
    }

    private func endContent() -> RequestStep {
        do {
            if let refusal = try verifyContentDigest() { return .respond(refusal) }
            switch counter.end() {
            case .part:
                _ = try lease.acknowledge()
                return .respond(partResponse())
            case .short(let length, let received):
                _ = try lease.acknowledge()
                let detail = "With this request the upload would have \(received) bytes, but its length is \(length)."
                return .respond(refused(.inconsistentLength(detail: detail)))
            case .complete(let length):
                try lease.setLength(length)
                // The authorization can be revoked while the content is received (draft section 13).
                if let refusal = context.service.refusal(
                    ofCompletionBy: context.request, context.identity, on: context.target)
                {
                    try stopProcessing()
                    return .respond(failed(refusal))
                }
                try beginProcessing()
                return complete(length)
            }
        } catch {
            if isProcessing { lease.endProcessing() }
            return step(for: error)
        }
    }

    /// Completes the upload after its processing has begun.
    private func complete(_ length: Int64) -> RequestStep {
        var completion = UploadCompletion(context, lease: lease, length: length)
        do throws(StoreError) {
            switch try completion.run() {
            case .final(let response):
                request.progress.hasCompleted = lease.id != nil
                return .respond(finished(response, length: length))
            case .postponed(let error):
                try stopProcessing()
                return .respond(postponed(error))
            }
        } catch {
            // If the target has run and must not run again, `release` stores the response for an interrupted target.
            let isFinal = completion.hasTargetRun && lease.isProcessingRecorded
            if isProcessing && !isFinal { lease.endProcessing() }
            return step(for: error)
        }
    }

    func end(_ end: RequestEnd) {
        lease.release()
        if lease.id != nil { request.offset = lease.acknowledged }
        if isUnreachable, !request.progress.hasCompleted { remove() }
    }

    /// - Returns: the error if the content does not match its digest; the content is then discarded.
    private func verifyContentDigest() throws(StoreError) -> Response? {
        guard let contentDigest else { return nil }
        for (algorithm, expected) in contentDigest.values where try lease.stagedDigest(algorithm) != expected {
            lease.discardStaged()
            acknowledgeForRefusal()
            return refused(.digestMismatch(field: "Content-Digest", algorithm: algorithm.rawValue))
        }
        try lease.commitStaged()
        return nil
    }

    // MARK: Responses

    private func partResponse() -> Response {
        switch kind {
        case .creation(let location?, _): context.responses.created(location: location, state: state())
        default: context.responses.appended(state: state())
        }
    }

    private func finished(_ response: Response, length: Int64) -> Response {
        switch kind {
        case .plain: response
        case .creation(let location, _):
            context.responses.finished(response, state: state(offset: length), uploadLocation: location)
        case .append:
            context.responses.finished(response, state: state(offset: length), uploadLocation: nil)
        case .retrieval:
            context.responses.retrieved(state: state(offset: length, phase: .complete(response)))
        }
    }

    private func refused(_ error: UploadError) -> Response {
        if case .plain = kind { return Response(error.problem(in: context.responses.dialect)) }
        return context.responses.refused(
            error, offset: reportableOffset, limits: remainingLimits)
    }

    private func postponed(_ error: TargetUnavailable) -> Response {
        // After any other error status of a HEAD, tus-js-client creates the upload again.
        let status: Status = if case .retrieval = kind { .locked } else { 503 }
        return failed(.targetUnavailable(status), ["Retry-After": error.retryAfterField])
    }

    private func failed(_ problem: ProblemDetails, _ fields: Fields = Fields()) -> Response {
        var response: Response
        if case .plain = kind {
            response = Response(problem)
        } else {
            response = context.responses.failed(problem, offset: reportableOffset)
        }
        for field in fields { response.fields.set(field.name, field.value) }
        return response
    }

    private func failed(_ refusal: AuthorizationRefusal) -> Response {
        let response = failed(refusal.problem, refusal.fields)
        guard var decision = refusal.response else { return response }
        for field in response.fields where field.name.lowercased().hasPrefix("upload-") {
            decision.fields.set(field.name, field.value)
        }
        return decision
    }

    private func failed(_ error: StoreError) -> Response { failed(ProblemDetails(error)) }

    private func invalidate(_ error: UploadError) -> RequestStep {
        do {
            try lease.invalidate(reason: error.code)
        } catch .superseded {
            return .drop
        } catch {
            return step(for: error)
        }
        let response: Response =
            if case .plain = kind { Response(error.problem(in: context.responses.dialect)) } else {
                context.responses.refused(error, limits: remainingLimits)
            }
        return .respond(response)
    }

    private func step(for error: StoreError) -> RequestStep {
        // The storage may have ended the lease between two calls.
        let error = error == .superseded ? lease.failure ?? error : error
        if case .superseded = error { return .drop }
        context.service.report(error, request: request.id)
        // If the storage cannot be reached, each attempt to record the bytes can last until its time limit. The release of the
        // lease makes one.
        if case .unavailable = error { return .respond(failed(error)) }
        acknowledgeForRefusal()
        return .respond(failed(error))
    }

    private func state(offset: Int64? = nil, phase: UploadState.Phase = .receiving) -> UploadState {
        UploadState(
            offset: offset ?? lease.acknowledged, length: counter.plan.length, phase: phase, limits: remainingLimits)
    }

    private var remainingLimits: UploadLimits {
        context.upload.limits.remaining(context.upload.expiresAt.map { context.service.store.remaining(until: $0) })
    }
}
