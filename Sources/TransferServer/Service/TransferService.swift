import HTTPSemantics
import ResumableUpload
import Synchronization
import SystemCalls
import UploadStorage

/// Dispatches each request to its handler.
final class TransferService: RequestService {
    let configuration: ServerConfiguration
    let store: UploadStore
    let routes: Routes
    let log: ServerLog
    let connections: ConnectionRegistry
    let metrics = ServerMetrics()
    private let authorizer: any Authorizer
    /// ``authorizer`` if it is an `UploadAuthorizer`; otherwise `nil`. The cast is made once, because a cast for each
    /// request would cost as much as the decision about the request.
    private let uploadAuthorizer: (any UploadAuthorizer)?
    /// The rules for pages of other origins; `nil` if no such page may send requests.
    let crossOrigin: CrossOrigin?
    private let trustedProxies: TrustedProxies
    let digests = FileDigests()
    let page: BrowserPage?
    private let draining = Atomic<Bool>(false)
    /// The numbers of connections that were closed or rejected since the last report, and the time of the next report
    /// (monotonic nanoseconds).
    private let refusals = Monitor((closed: 0, rejected: 0, nextReport: Int64(0)))

    init(
        configuration: ServerConfiguration, store: UploadStore, routes: Routes, log: ServerLog,
        connections: ConnectionRegistry
    ) {
        self.configuration = configuration
        self.store = store
        self.routes = routes
        self.log = log
        self.connections = connections
        authorizer =
            configuration.authorizer
            ?? AnonymousAuthorizer(
                isAnonymousAllowed: configuration.isAnonymousAllowed, allowedOrigins: configuration.corsOrigins)
        uploadAuthorizer = authorizer as? any UploadAuthorizer
        crossOrigin = configuration.corsOrigins.isEmpty ? nil : CrossOrigin(origins: configuration.corsOrigins)
        trustedProxies = TrustedProxies(configuration.trustedProxies)
        page = configuration.hasPage ? BrowserPage.current : nil
    }

    /// Whether this server creates the heads of all responses itself, so that no head is long.
    var shouldCreateAllHeads: Bool {
        routes.hasOnlyFiles && (authorizer is TokenAuthorizer || authorizer is AnonymousAuthorizer)
    }

    func beginDraining() { draining.store(true, ordering: .relaxed) }

    func record(_ summary: RequestSummary) {
        metrics.record(summary)
        log.record(summary)
        if configuration.shouldExplain { log.explain(summary) }
    }

    func reachedConnectionLimit(closed: Int, isRejected: Bool, largest: (client: ConnectionClient, count: Int)?) {
        metrics.count(connectionsAtLimit: closed + (isRejected ? 1 : 0))
        let now = SystemClock.monotonicNanoseconds()
        let report = refusals.withLock { refusals -> (closed: Int, rejected: Int)? in
            refusals.closed += closed
            refusals.rejected += isRejected ? 1 : 0
            guard now >= refusals.nextReport else { return nil }
            defer { refusals = (0, 0, now + 60_000_000_000) }
            return (refusals.closed, refusals.rejected)
        }
        guard let report else { return }
        log.warning(
            "the maximum of \(configuration.maxConnections) connections (--max-connections) is reached; since the last"
                + " report the server closed \(report.closed) connections to make room and rejected \(report.rejected)"
                + (largest.map { "; \($0.client) has the most connections, \($0.count)" } ?? ""))
    }

    func client(ofPeer peer: String?) -> ConnectionClient { trustedProxies.client(ofPeer: peer) }

    func client(of fields: Fields, origin: RequestOrigin) -> ConnectionClient? {
        trustedProxies.client(of: fields, origin: origin)
    }

    /// An object that calls an asynchronous function of a handler for a request.
    func handlerCall(for request: RequestContext) -> HandlerCall {
        HandlerCall(request.connection, processingWait: store.configuration.processingWait)
    }

    func contentFailed(_ error: any Error, request: RequestID) {
        if let error = error as? StoreError {
            report(error, request: request)
        } else {
            log.error("the content of the response could not be produced: \(error)", request: request)
        }
    }

    /// Logs an error of the store if the operator must act on it.
    func report(_ error: StoreError, request: RequestID) {
        if error.isForOperator { log.error("\(error)", request: request) }
    }

    func origin(of fields: Fields, peer: String?) -> RequestOrigin {
        var origin = trustedProxies.origin(of: fields, peer: peer)
        if let base = configuration.publicBase { origin.base = base }
        return origin
    }

    func responseFields(for fields: Fields, isSecure: Bool) -> Fields {
        var result = crossOrigin?.responseFields(for: fields) ?? [:]
        if let seconds = configuration.strictTransportSecurity, isSecure {
            result.append("Strict-Transport-Security", "max-age=\(seconds)")
        }
        return result
    }

    /// The properties of a request that a handler needs to forward it.
    func forwardingContext(of request: RequestContext, _ identity: Identity) -> ForwardingContext {
        let isPath = request.head.target.utf8.first == UInt8(ascii: "/")
        let authority =
            (isPath ? nil : RequestTarget(parsing: request.head.target)?.authority) ?? request.fields["Host"]
        let context = ForwardingContext(
            fields: trustedProxies.forwardedFields(
                of: request.fields, peer: request.connection.peer, host: authority,
                scheme: request.connection.credentials == nil ? "http" : "https"),
            host: authority, requestFields: request.fields, hasOwnCredential: identity.hasOwnCredential,
            isAwaited: { [connection = request.connection] in connection.isAwaited })
        request.forwarding = context
        request.ownPath = routes.uploadsPath
        return context
    }

    func begin(_ request: RequestContext, for target: RequestTarget) -> RequestStep {
        let route = routes.route(of: target)
        request.route = route.label
        if !route.canReceiveContent { request.explanation = nil }
        if request.expectation == .unsupported { return .respond(ProblemDetails.unsupportedExpectation) }
        switch route {
        // Health checks and the module need no token. The session endpoint evaluates the token itself.
        case .health, .module, .session: return serve(request, at: route, .anonymous, target, nil)
        case .target(let handler, _) where handler.isForFiles: break
        // Only files can be read with the cookie of a session.
        default: request.removeSessionCookie()
        }
        let page = request.method == .get || request.method == .head ? pageRequest(request, at: route) : nil
        let identity: Identity
        do throws(AuthorizationRefusal) {
            identity = try self.identity(of: request.head, target, at: route)
        } catch {
            let shown = error.isUnauthenticated ? page?.response(to: error) : nil
            return .respond(shown ?? unauthenticated(request, refusal: error))
        }
        request.principal = identity.principal
        request.removeSessionCookie()
        // tus 1.0 has some field names in common with the draft. Without this check the server would read these fields
        // as those of the draft, and the client would report an upload that does not exist.
        if TusProtocol.isUsed(by: request.fields), route.canReceiveContent, !route.isForwarded {
            return .respond(ProblemDetails.tusProtocol)
        }
        return serve(request, at: route, identity, target, page)
    }

    /// The identity that sends a request.
    ///
    /// If the request is for an upload, the authorizer may identify the creator of the upload by the path of its
    /// target. In all other cases the path of the request decides, so that a client cannot find out whether the upload
    /// exists.
    func identity(of head: RequestHead, _ target: RequestTarget) throws(AuthorizationRefusal) -> Identity {
        try identity(of: head, target, at: routes.route(of: target))
    }

    private func identity(
        of head: RequestHead, _ target: RequestTarget, at route: RequestRoute
    ) throws(AuthorizationRefusal) -> Identity {
        if let authorizer = uploadAuthorizer, case .upload(let name?) = route,
            let id = UploadID(parsing: name), let upload = try upload(id),
            let path = routes.match(reference: upload.target)?.target.location,
            let identity = authorizer.identify(head, target: target, uploadTo: path),
            identity.principal == upload.principal
        {
            return identity
        }
        return try authorizer.identify(head, target: target)
    }

    /// The request that created an upload; `nil` if there is none.
    /// - Throws: a refusal if the store fails, because it is then unknown whether the request needs credentials.
    private func upload(_ id: UploadID) throws(AuthorizationRefusal) -> NewUpload? {
        do throws(StoreError) { return try store.record(id, shouldConfirmHold: false).upload } catch {
            let problem = ProblemDetails(error)
            if problem.status.rawValue >= 500 { throw AuthorizationRefusal(problem) }
            return nil
        }
    }

    /// Responds to a request without valid credentials. Browsers send preflights without credentials; the response to a
    /// preflight has the CORS fields, and no information about resources. An application can refuse a request without
    /// credentials with other statuses than 401.
    private func unauthenticated(_ request: RequestContext, refusal: AuthorizationRefusal) -> Response {
        let lacksCredentials =
            refusal.isUnauthenticated || refusal.response != nil && !configuration.corsOrigins.isEmpty
        guard lacksCredentials, request.method == .options, !request.fields.contains("Authorization"),
            CrossOrigin.isPreflight(request.fields)
        else { return Response(refusal) }
        let fields = crossOrigin?.optionsFields(for: request.fields, methods: Self.methods) ?? [:]
        return Response(status: 204, fields: fields)
    }

    /// The reason why this identity may not perform an operation on a target, or on the server itself if `target` is
    /// `nil`; `nil` if it may.
    func refusal(of identity: Identity, _ operation: AccessOperation, on target: Target?) -> AuthorizationRefusal? {
        refusal(of: identity, operation, at: target?.location)
    }

    func refusal(of identity: Identity, _ operation: AccessOperation, at path: PathSegments?) -> AuthorizationRefusal? {
        authorizer.refusal(of: identity, operation, at: path)
    }

    /// The reason why the identity that has sent a request may not complete an upload now; `nil` if it may. If the
    /// request began more than ``identityLifetime`` nanoseconds ago, its sender is identified again.
    func refusal(
        ofCompletionBy request: RequestContext, _ identity: Identity, on target: Target
    ) -> AuthorizationRefusal? {
        if SystemClock.monotonicNanoseconds() - request.startedAt > Self.identityLifetime,
            let requested = RequestTarget(parsing: request.head.target)
        {
            do throws(AuthorizationRefusal) {
                let now = try self.identity(of: request.head, requested)
                guard now.principal == identity.principal else {
                    return .forbidden(
                        code: "not-allowed",
                        detail: "The credentials of this request now belong to another principal.")
                }
            } catch { return error }
        }
        return refusal(of: identity, .create, on: target)
    }

    /// The nanoseconds after which the sender of a request in progress is identified again.
    private static let identityLifetime: Int64 = 10_000_000_000

    private func serve(
        _ request: RequestContext, at route: RequestRoute, _ identity: Identity, _ target: RequestTarget,
        _ page: PageRequest?
    ) -> RequestStep {
        switch route {
        case .health(let path): return .respond(health(request, path))
        case .module(let file): return .respond(ModuleFile.response(file, to: request))
        case .session:
            return .respond(SessionEndpoint(service: self, request: request, target: target).response())
        case .usage:
            return .respond(
                UsageEndpoint(service: self, request: request, identity: identity).response(to: target.query))
        case .home:
            guard let page, let files = routes.filesTarget else {
                return .respond(ProblemDetails.notFound(hasFiles: routes.hasFiles))
            }
            return TargetEndpoint(
                service: self, request: request, identity: identity, route: files.route, target: files.target,
                page: page
            ).serve()
        case .metrics:
            return .respond(MetricsEndpoint(service: self, request: request, identity: identity).response())
        case .server: return .respond(server(request, identity))
        case .upload(let name):
            return UploadEndpoint(service: self, request: request, identity: identity).serve(name)
        case .target(let handler, let target):
            return TargetEndpoint(
                service: self, request: request, identity: identity, route: handler, target: target, page: page
            ).serve()
        case .invalid(let refusal, let isUpload):
            // Every invalid URL of an upload gets the response for an unknown upload.
            return .respond(isUpload ? UploadError.notFound.problem(in: .unversioned) : ProblemDetails(refusal))
        case .unknown: return .respond(ProblemDetails.notFound(hasFiles: routes.hasFiles))
        }
    }

    private func health(_ request: RequestContext, _ path: String) -> Response {
        guard request.method == .get || request.method == .head else {
            return Response(ProblemDetails.methodNotAllowed, fields: ["Allow": "GET, HEAD"])
        }
        let reasons = path == "/healthz" ? [] : unreadiness
        guard reasons.isEmpty else {
            return Response(
                ProblemDetails.notReady(reasons), fields: ["Cache-Control": "no-store", "Retry-After": "5"])
        }
        return Response(
            status: 200, fields: ["Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"],
            content: Array((path == "/healthz" ? "ok\n" : "ready\n").utf8))
    }

    /// The stable codes of the reasons why the server is not ready; empty if it is ready.
    var unreadiness: [String] {
        (draining.load(ordering: .relaxed) ? ["draining"] : []) + store.health().reasons
    }

    /// `OPTIONS *`: the limits that all resources share.
    private func server(_ request: RequestContext, _ identity: Identity) -> Response {
        guard request.method == .options else { return Response(ProblemDetails.malformedTarget) }
        if let refusal = refusal(of: identity, .discover, on: nil) {
            return Response(refusal)
        }
        return discovery(request, methods: Self.methods)
    }

    private static let methods: [Method] = [.get, .head, .put, .post, .patch, .delete, .options]

    /// The response to `OPTIONS`, both for discovery and for preflights of browsers.
    func discovery(_ request: RequestContext, methods: [Method], limits: UploadLimits? = nil) -> Response {
        var response = responses(for: request, stored: nil).discovered(
            limits: limits ?? configuration.limits, allow: methods)
        for field in crossOrigin?.optionsFields(for: request.fields, methods: methods) ?? [:] {
            response.fields.append(field.name, field.value)
        }
        return response
    }

    /// The responses in the dialect of a request, or otherwise in the dialect of the request that created its upload.
    func responses(for request: RequestContext, stored: Dialect?) -> UploadResponses {
        UploadResponses(
            answering: request.fields, version: request.head.version, storedDialect: stored,
            isAnnouncedWithoutVersion: configuration.isAnnouncedWithoutVersion, withholding: withholding(request.fields)
        )
    }

    /// The reason why the client, a proxy or the configuration does not allow interim responses; `nil` if they do.
    private func withholding(_ request: Fields) -> InterimObstacle? {
        if !configuration.shouldSendInterimResponses { return .turnedOff }
        return request.values(ServerFieldName.interim).contains { $0.lowercased() == "off" } ? .declined : nil
    }
}
