import HTTPSemantics
import ResumableUpload
import Synchronization
import SystemCalls
import UploadStorage

/// Leads each request to what serves it.
final class TransferService: RequestService {
    let configuration: ServerConfiguration
    let store: UploadStore
    let routes: Routes
    let log: ServerLog
    private let authorizer: any Authorizer
    let crossOrigin: CrossOrigin
    let digests = FileDigests()
    private let draining = Atomic<Bool>(false)
    /// Connections that were refused since that was last logged, in monotonic nanoseconds.
    private let refusals = Monitor((count: 0, nextReport: Int64(0)))

    init(configuration: ServerConfiguration, store: UploadStore, routes: Routes, log: ServerLog) {
        self.configuration = configuration
        self.store = store
        self.routes = routes
        self.log = log
        authorizer =
            configuration.authorizer
            ?? AnonymousAuthorizer(
                allowsAnonymous: configuration.allowsAnonymous, allowedOrigins: configuration.corsOrigins)
        crossOrigin = CrossOrigin(origins: configuration.corsOrigins)
    }

    func beginDraining() { draining.store(true, ordering: .relaxed) }

    func record(_ summary: RequestSummary) { log.record(summary) }

    func refusedConnection(from peer: String?) {
        let now = SystemClock.monotonicNanoseconds()
        let isDue = refusals.withLock { refusals in
            refusals.count += 1
            guard now >= refusals.nextReport else { return 0 }
            refusals.nextReport = now + 60_000_000_000
            defer { refusals.count = 0 }
            return refusals.count
        }
        guard isDue > 0 else { return }
        log.warning(
            "\(isDue) connections were closed, the last one from \(peer ?? "a Unix socket"): "
                + "there are \(configuration.maximumConnections) already (--max-connections)")
    }

    /// Logs what the operator has to know of.
    func report(_ error: StoreError, request: RequestID) {
        if error.concernsOperator { log.error("\(error)", request: request) }
    }

    func begin(_ request: IncomingRequest) -> RequestStanding {
        let fields = crossOrigin.responseFields(for: request.fields)
        if Expectation(fields: request.fields, version: request.head.version) == .unsupported {
            return RequestStanding(Served(ProblemDetails.unsupportedExpectation), fields: fields)
        }
        // Whoever watches the server need not know a token.
        if request.path == "/healthz" || request.path == "/readyz" {
            return RequestStanding(serveHealth(request), fields: fields)
        }
        let identity: Identity
        do throws(AuthorizationRefusal) {
            identity = try authorizer.identify(request.head, target: request.target)
        } catch {
            return RequestStanding(serveStranger(request, refusal: error), fields: fields)
        }
        return RequestStanding(route(request, identity), fields: fields, principal: identity.principal)
    }

    /// Browsers ask without credentials whether a page may send a request with some. They learn that, and nothing of what
    /// is here.
    private func serveStranger(_ request: IncomingRequest, refusal: AuthorizationRefusal) -> Served {
        guard refusal.isForLackOfCredentials, request.method == .options, !request.fields.contains("Authorization"),
            CrossOrigin.isPreflight(request.fields)
        else { return Served(refusal) }
        let fields = crossOrigin.preflightFields(for: request.fields, methods: Self.methods)
        return Served(Reply(status: 204, fields: fields, content: .bytes([])))
    }

    /// Why this identity may not do something with a target; without one, with the server.
    func refusal(of identity: Identity, _ operation: Operation, on target: Target?) -> AuthorizationRefusal? {
        authorizer.refusal(of: identity, operation, at: target?.location)
    }

    private func route(_ request: IncomingRequest, _ identity: Identity) -> Served {
        if case .asterisk = request.target.form { return serveAsterisk(request, identity) }
        let path: PathSegments
        do {
            path = try PathSegments(decoding: request.path)
        } catch {
            // No spelling of an upload's URL tells more than that there is no such upload.
            let isUpload = request.path.hasPrefix("/uploads/")
            return Served(isUpload ? UploadError.notFound.problem(in: .rfc) : ProblemDetails(error))
        }
        if path.segments.first == "uploads" && path.segments.count <= 2 {
            return UploadEndpoint(service: self, request: request, identity: identity).serve(path)
        }
        guard let (handler, target) = routes.match(path, query: request.target.query) else {
            return Served(ProblemDetails.notFound)
        }
        return TargetEndpoint(
            service: self, request: request, identity: identity, handler: handler, target: target
        ).serve()
    }

    private func serveHealth(_ request: IncomingRequest) -> Served {
        guard request.method == .get || request.method == .head else {
            return Served(Reply(ProblemDetails.methodNotAllowed, fields: ["Allow": "GET, HEAD"]))
        }
        var fields: Fields = ["Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"]
        if request.path == "/healthz" {
            return Served(Reply(status: 200, fields: fields, content: .bytes(Array("ok\n".utf8))))
        }
        var reasons = draining.load(ordering: .relaxed) ? ["draining"] : []
        let health = store.health()
        if !health.ready { reasons += health.reasons }
        if !reasons.isEmpty { fields.append("Retry-After", "5") }
        let text = reasons.isEmpty ? "ready\n" : reasons.map { $0 + "\n" }.joined()
        return Served(
            Reply(status: reasons.isEmpty ? 200 : 503, fields: fields, content: .bytes(Array(text.utf8))))
    }

    /// `OPTIONS *`: the limits that all resources share.
    private func serveAsterisk(_ request: IncomingRequest, _ identity: Identity) -> Served {
        guard request.method == .options else { return Served(ProblemDetails.malformedTarget) }
        if let refusal = refusal(of: identity, .discover, on: nil) { return Served(refusal) }
        return Served(discovery(request, methods: Self.methods))
    }

    private static let methods: [Method] = [.get, .head, .put, .post, .patch, .delete, .options]

    /// The answer to `OPTIONS`, as discovery and as a browser's preflight.
    func discovery(_ request: IncomingRequest, methods: [Method], limits: UploadLimits? = nil) -> Reply {
        let response = responses(for: request, stored: nil).discovered(
            limits: limits ?? configuration.limits, allow: methods)
        var reply = Reply(response)
        for field in crossOrigin.preflightFields(for: request.fields, methods: methods) {
            reply.fields.append(field.name, field.value)
        }
        return reply
    }

    /// The dialect of a request: the one it names, else the one in which its upload was begun.
    func responses(for request: IncomingRequest, stored: Dialect?) -> UploadResponses {
        UploadResponses(
            answering: request.fields, version: request.head.version, storedDialect: stored,
            announcesWithoutVersion: configuration.announcesWithoutVersion)
    }
}
