import HTTPSemantics
import HTTPTransport
import SystemCalls
import TransferServer
import UploadStorage

/// Forwards the requests below a route to an application.
///
/// A request that uses the upload protocol is received like every resumable upload. When it is complete, the application
/// gets it as one ordinary request. All other requests are forwarded while they arrive.
public final class GatewayHandler: StreamingHandler {
    /// The route.
    public let route: Route
    let client: OriginClient

    /// Creates a handler for the prefix ``Route/prefix``.
    public init(_ route: Route) {
        self.route = route
        client = OriginClient(route.origin, timeout: route.timeout)
    }

    // MARK: Requests that do not use the upload protocol

    package func begin(_ request: StreamedRequest) -> RequestStep {
        if ForwardedMessage.requestsUpgrade(request.head.fields) || request.head.method == .connect {
            return .respond(Response(Self.upgradeUnsupported))
        }
        if request.head.method == .trace { return .respond(Response(Self.traceUnsupported)) }
        if ForwardedMessage.visits(in: request.context.fields) > Self.maxVisits {
            return .respond(Response(Self.loopDetected))
        }
        var fields = outgoing(
            ForwardedMessage.requestFields(request.head.fields, isUpload: false), request.context,
            principal: request.principal)
        // RFC 9110 section 7.6.2
        if request.head.method == .options, let hops = fields["Max-Forwards"].flatMap({ UInt32($0) }) {
            guard hops > 0 else { return .respond(Response(status: .noContent)) }
            fields.set("Max-Forwards", String(hops - 1))
        }
        return .receive(ProxiedRequest(request, to: client, fields: fields))
    }

    /// The fields that the origin gets.
    /// - Parameter fields: the forwarded fields of the client.
    func outgoing(_ fields: Fields, _ context: ForwardingContext, principal: String) -> Fields {
        var result = fields
        if context.hasOwnCredential { result.remove("Authorization") }
        if principal != Identity.anonymous.principal { result.append("Onward-Principal", principal) }
        if let host = context.host { result.append("Host", host) }
        for field in context.fields { result.append(field.name, field.value) }
        return result
    }

    /// The maximum number of servers of this kind that a request can pass.
    private static let maxVisits = 10

    private static let loopDetected = ProblemDetails(
        status: 508, detail: "The application of this route forwards the request to this server again.",
        code: "forwarding-loop")
    private static let upgradeUnsupported = ProblemDetails(
        status: .notImplemented, detail: "This server does not forward Upgrade and CONNECT.",
        code: "upgrade-unsupported")
    private static let traceUnsupported = ProblemDetails(
        status: .notImplemented, detail: "This server does not forward TRACE.", code: "trace-unsupported")

    /// The server does not call this method, because all requests without the upload protocol are streamed.
    public func respond(to request: TargetRequest) async -> Response { Response(status: .notFound) }

    // MARK: Uploads

    /// Returns `POST`, `PUT` and `PATCH`.
    public func methods(of target: Target) -> [Method] { [.post, .put, .patch] }

    /// Accepts every upload.
    public func accept(_ proposal: UploadProposal) -> Acceptance { .accept }

    /// Returns `true`.
    public var shouldStoreQuery: Bool { true }

    package func storedFields(of request: Fields) -> [String] {
        ForwardedMessage.requestFields(request, isUpload: true).map(\.name)
    }

    /// Returns `true`: if the request was not sent to the application, it can be sent later. If it was sent, it is sent
    /// again only after a response with 503, or for a route with ``Route/isRepeatable``.
    public var isCompletionRepeatable: Bool { true }

    /// Sends the complete upload to the origin and returns its response.
    /// - Throws: `TargetUnavailable` if the origin cannot be reached, or has responded with 503.
    public func complete(_ upload: ReceivedUpload) async throws -> Response {
        guard let forwarding = upload.forwarding else { throw TargetUnavailable("the request is not forwarded") }
        return try UploadForwarder(self, upload, forwarding).run()
    }
}
