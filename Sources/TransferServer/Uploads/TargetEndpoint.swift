import HTTPSemantics
import ResumableUpload
import SystemCalls
import UploadStorage

/// Serves one request to a target resource: creations of uploads, plain uploads, and requests without a representation.
struct TargetEndpoint {
    let service: TransferService
    let request: RequestContext
    let identity: Identity
    let route: HandlerRoute
    let target: Target
    /// The web interface, if the request gets it instead of a listing or an error.
    let page: PageRequest?

    private var handler: any TargetHandler { route.handler }
    private var principal: String { identity.principal }
    private var limits: UploadLimits { service.configuration.limits.restricted(by: identity.limits) }

    func serve() -> RequestStep {
        let responses = service.responses(for: request, stored: nil)
        let kind = RequestKind(
            method: request.method, isUploadResource: false, fields: request.fields, dialect: responses.dialect)
        if let handler = route.streaming {
            guard case .creation = kind else { return stream(to: handler, responses.dialect) }
            if target.isForwardedOnly {
                do { _ = try PathSegments(decoding: target.path) } catch { return .respond(ProblemDetails(error)) }
            }
        }
        switch kind {
        case .discovery:
            if let refusal = refusal(.discover) { return .respond(refusal) }
            return .respond(service.discovery(request, methods: handler.methods(of: target), limits: limits))
        case .creation(let isComplete):
            return serveContent(isComplete: isComplete, responses: responses)
        default:
            let canReceiveContent = request.method == .put || request.method == .post || request.method == .patch
            return canReceiveContent ? serveContent(isComplete: nil, responses: responses) : serveWithoutContent()
        }
    }

    private func refusal(_ operation: AccessOperation) -> AuthorizationRefusal? {
        service.refusal(of: identity, operation, on: target)
    }

    // MARK: Streams

    private func stream(to handler: any StreamingHandler, _ dialect: Dialect) -> RequestStep {
        var operation: AccessOperation = request.method == .post ? .create : AccessOperation(request.method)
        if operation == .read { operation = .readApplication }
        if let refusal = refusal(operation) { return .respond(refusal) }
        if request.isLengthMissing && !request.method.isSafe && request.method != .delete {
            return .respond(ProblemDetails.missingLength)
        }
        request.explanation = nil
        let length: Int64? =
            switch request.framing {
            case .none: 0
            case .length(let length): length
            case .chunked: nil
            }
        let bounds = StreamBounds(limits, dialect)
        if let length, let refusal = bounds.refusal(ofContent: length) { return .respond(refusal) }
        let streamed = StreamedRequest(
            head: request.head, reference: Self.reference(request.head.target), principal: principal, length: length,
            context: service.forwardingContext(of: request, identity), interim: request.interim)
        let step = handler.begin(streamed)
        if case .receive(let exchange) = step { return .receive(BoundedExchange(exchange, request.method, bounds)) }
        return bounds.announced(in: step, to: request.method)
    }

    /// The path and query of a request target in origin form or absolute form.
    private static func reference(_ target: String) -> String {
        guard target.utf8.first != UInt8(ascii: "/"), let parsed = RequestTarget(parsing: target),
            parsed.form == .absolute
        else { return target }
        return parsed.path + (parsed.query.map { "?" + $0 } ?? "")
    }

    // MARK: Without a representation

    private func serveWithoutContent() -> RequestStep {
        if let refusal = refusal(AccessOperation(request.method)) {
            return .respond(page?.response(to: refusal) ?? Response(refusal))
        }
        guard handler.methods(of: target).contains(request.method) else { return .respond(methodNotAllowed) }
        let wanted = TargetRequest(
            target: target, method: request.method, principal: principal, fields: request.fields,
            base: request.origin.base, page: page)
        let isPersonal = isCredentialRequired
        // Unexpected content is read and ignored, so that the connection can be reused.
        return request.isContentExpected
            ? .receive(DeferredExchange { self.response(to: wanted, isPersonal: isPersonal) })
            : .respond(response(to: wanted, isPersonal: isPersonal))
    }

    /// The response of the handler, with the fields that the server adds.
    /// - Parameter isPersonal: whether only clients with credentials get the response.
    private func response(to wanted: TargetRequest, isPersonal: Bool) -> Response {
        var response = handlerResponse(to: wanted)
        if response.status == .notFound, let page {
            response = page.response(response.status, code: ProblemDetails.noSuchFile.code)
        }
        var caching = CacheControl.noCache
        if response.status == 200, case .stream(let stream) = response.content, let content = stream as? FileContent {
            let connection = request.connection
            response = FileResponses(service.digests, isAwaited: { connection.isAwaited })
                .response(content, fields: response.fields, to: wanted)
            if !response.status.isClientError { caching = service.configuration.cacheControl }
        }
        if wanted.method.isSafe, !response.fields.contains("Cache-Control") {
            response.fields.append("Cache-Control", (isPersonal ? caching.forOneUser : caching).serialized)
        }
        return response
    }

    private func handlerResponse(to wanted: TargetRequest) -> Response {
        if let handler = route.synchronous { return handler.respond(to: wanted) }
        // If there is no result, the server has closed the connection, and nothing is sent.
        return service.handlerCall(for: request).run { [handler] in await handler.respond(to: wanted) }
            ?? Response(ProblemDetails.targetFailed)
    }

    /// Whether the same request without credentials would be rejected.
    private var isCredentialRequired: Bool {
        identity != .anonymous
            && service.refusal(of: .anonymous, AccessOperation(request.method), on: target) != nil
    }

    private var methodNotAllowed: Response {
        let allow = handler.methods(of: target).map(\.rawValue).joined(separator: ", ")
        return Response(ProblemDetails.methodNotAllowed, fields: ["Allow": allow])
    }

    // MARK: With a representation

    private func serveContent(isComplete: Bool?, responses: UploadResponses) -> RequestStep {
        if let refusal = refusal(.create) { return .respond(refusal) }
        guard handler.methods(of: target).contains(request.method) else { return .respond(methodNotAllowed) }
        // The content is only a part of the file, and would replace the complete file (RFC 9110 section 9.3.4).
        if request.method == .put, request.fields.contains("Content-Range") {
            let problem = ProblemDetails.partialContent
            return .respond(isComplete == nil ? Response(problem) : responses.failed(problem, offset: nil))
        }
        // The creation of an upload that continues later can have no content, so it needs no length.
        if isComplete != false, request.isLengthMissing { return .respond(ProblemDetails.missingLength) }
        if request.explanation == nil { request.explanation = UploadExplanation() }
        request.explanation?.permission = responses.interim
        let creation = Creation(
            dialect: responses.dialect, isComplete: isComplete, framing: request.framing, fields: request.fields)
        switch creation.decide(limits: limits, announces: responses.isInterimResponseAllowed) {
        case .refuse(let error):
            return .respond(responses.refused(error, limits: limits))
        case .plain(let plan, let reason):
            request.explanation?.handling = .plain(reason)
            return begin(plan, isComplete: isComplete, responses: responses, isUpload: false)
        case .create(let plan):
            return begin(plan, isComplete: isComplete, responses: responses, isUpload: true)
        }
    }

    private func begin(
        _ plan: ContentPlan, isComplete: Bool?, responses: UploadResponses, isUpload: Bool
    ) -> RequestStep {
        let stored = StoredCreation(fields: request.fields, target: target, route: route)
        if let refusal = refusal(of: plan, stored, isComplete: isComplete, responses) { return .respond(refusal) }
        let upload = NewUpload(
            principal: principal, method: request.method, target: stored.target.reference, fields: stored.fields,
            dialect: responses.dialect, limits: limits, length: plan.length,
            digests: RepresentationDigests(fields: stored.fields).algorithms,
            expiresAt: limits.maxAge.map { service.store.time + $0 })
        let arrivesNow = isUpload && contentArrivesNow()
        do {
            let lease = try create(upload, isUpload: isUpload, shouldRecordAtOnce: !arrivesNow)
            if isUpload { request.explanation?.handling = .creation(isPart: plan.completion != .atEnd) }
            let connection = request.connection
            lease.onRevocation { connection.close(reason: .takenOver) }
            let location = isUpload ? lease.id.map { service.routes.path(of: $0) } : nil
            let announcement =
                responses.isInterimResponseAllowed
                ? location.map { responses.announcement(location: $0, limits: limits) } : nil
            let isFindable = lease.isFindable
            let outcome = isFindable ? announcement.map { request.announce($0, isFollowed: arrivesNow) } : nil
            if outcome == .broken {
                // The client did not receive the URL of this upload.
                lease.release()
                if let id = lease.id { _ = try? service.store.cancel(id, principal: principal) }
                return .drop
            }
            let context = UploadExchange.Context(
                service: service, request: request, identity: identity, responses: responses, upload: upload,
                route: route, target: stored.target)
            let delayed = isFindable ? nil : announcement
            return try UploadExchange.begin(
                context, lease: lease, plan: plan,
                kind: isComplete == nil
                    ? .plain : .creation(location: location, isAnnounced: outcome == .sent || delayed != nil),
                announcement: delayed)
        } catch .superseded {
            return .drop
        } catch {
            service.report(error, request: request.id)
            return .respond(responses.failed(ProblemDetails(error), offset: nil))
        }
    }

    /// The response to a request whose content the server or the handler does not accept; `nil` if both accept it.
    private func refusal(
        of plan: ContentPlan, _ stored: StoredCreation, isComplete: Bool?, _ responses: UploadResponses
    ) -> Response? {
        if service.configuration.isLengthRequired && plan.isOpenEnded(request.framing) {
            let error = UploadError.lengthRequired
            return isComplete == nil
                ? Response(error.problem(in: responses.dialect)) : responses.refused(error, limits: limits)
        }
        if stored.size > StoredCreation.maxSize {
            let problem = ProblemDetails.storedFieldsTooLarge
            return isComplete == nil ? Response(problem) : responses.failed(problem, offset: nil)
        }
        let proposal = UploadProposal(
            target: target, method: request.method, principal: principal, fields: request.fields, length: plan.length,
            canReplace: refusal(.write) == nil)
        guard case .refuse(let response) = handler.accept(proposal) else { return nil }
        // A 5xx is not final, so the client can retry.
        let isFinal = isComplete != nil && !response.status.isServerError
        let state = UploadState(offset: 0, limits: limits)
        return isFinal ? responses.finished(response, state: state, uploadLocation: nil) : response
    }

    /// Whether all content has arrived, and the upload of a file ends immediately, so that its row is created only at
    /// its end. Other handlers, and checks of files, need the row at the beginning: they may take long, and they may
    /// store the idempotency key of the upload. A client that expects 100 has not sent content yet.
    private func contentArrivesNow() -> Bool {
        route.synchronous?.isCompletedSynchronously == true && !request.fields.contains("Expect")
            && request.receiveShortContent()
    }

    private func create(
        _ upload: NewUpload, isUpload: Bool, shouldRecordAtOnce: Bool
    ) throws(StoreError) -> UploadLease {
        // The request for an application has a row even if its client does not know the URL, because the row records that
        // the application may have processed it.
        guard isUpload || route.streaming != nil else { return try service.store.createTransient(upload) }
        let lease = try service.store.create(upload, shouldRecordAtOnce: shouldRecordAtOnce, isReported: isUpload)
        request.upload = lease.id
        request.progress.hasCreated = true
        return lease
    }
}
