import HTTPSemantics
import ResumableUpload

/// Decides which identity may perform which operation.
///
/// The server calls the authorizer before it sends anything about a resource, before it reads content, and again when
/// an upload is complete (draft section 13). The threads of connections call it concurrently, and the calls may block.
public protocol Authorizer: Sendable {
    /// Returns the identity that sends a request.
    ///
    /// - Parameters:
    ///   - head: the request line and the fields.
    ///   - target: the target of the request; its authority can differ from the `Host` field.
    /// - Throws: `AuthorizationRefusal` if the request must not be served.
    func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity

    /// Returns why this identity may not perform the operation now; `nil` if it may.
    ///
    /// - Parameters:
    ///   - identity: the identity that ``identify(_:target:)`` returned.
    ///   - operation: the operation of the request.
    ///   - path: the path of the target resource. `nil` means the server itself: each request for an upload resource is
    ///     first checked without a path, and then with the path of the target of the upload. So return `nil` for
    ///     every operation without a path, unless the identity may do nothing at all. The metrics have the path
    ///     `/metrics/`. An upload that a handler may also use to replace a file is checked for `create` and for
    ///     `write`; if only `write` is refused, it can only create.
    func refusal(of identity: Identity, _ operation: AccessOperation, at path: PathSegments?) -> AuthorizationRefusal?
}

/// An authorizer that identifies the sender of some requests for uploads by the target of the upload.
package protocol UploadAuthorizer: Authorizer {
    /// Returns the identity that sends a request for an upload, as for a request to the target of the upload; `nil` if
    /// `identify(_:target:)` decides. The server uses the identity only if the upload belongs to its principal.
    ///
    /// - Parameters:
    ///   - head: the request for the upload.
    ///   - target: the target of this request.
    ///   - path: the path of the target of the upload.
    func identify(_ head: RequestHead, target: RequestTarget, uploadTo path: PathSegments) -> Identity?
}

/// The operation of a request on a target resource.
#if hasAttribute(nonexhaustive)
    @nonexhaustive
#endif
public enum AccessOperation: Sendable, Hashable, CaseIterable {
    /// Read the methods and limits (`OPTIONS`).
    case discover
    /// Read a resource of a handler (`GET`, `HEAD`).
    case read
    /// Read a resource of an application behind a route (`GET`, `HEAD`). Public reading does not include it.
    case readApplication
    /// Read the server's metrics.
    case readMetrics
    /// Create a file with a new name, or append to, retrieve or cancel an upload.
    case create
    /// Replace or delete an existing file.
    case write

    /// The operation of a request without content.
    init(_ method: Method) {
        self = method == .options ? .discover : method.isSafe ? .read : .write
    }
}

/// The sender of a request.
public struct Identity: Sendable, Hashable {
    /// The principal: the name that owns uploads and files, for which quotas are counted, and which is logged.
    public let principal: String
    /// The identifier by which the authorizer recognizes the credential of the client; never the credential itself.
    public let credential: String
    /// Limits for uploads that this request creates, in addition to those of the server; `nil` if there are none.
    public let limits: UploadLimits?
    /// Whether the request has an `Authorization` that only this server understands. It is not forwarded.
    package var hasOwnCredential = false
    /// Whether the request has a session cookie in place of a bearer token.
    var isSession = false
    /// The token of the request; `nil` if it has none of this server.
    var token: TokenList.Token?

    /// Creates an identity.
    public init(principal: String, credential: String = "", limits: UploadLimits? = nil) {
        self.principal = principal
        self.credential = credential
        self.limits = limits
    }

    /// The identity of all clients without credentials.
    public static let anonymous = Identity(principal: "anonymous")
}

/// The reason why a request is not authorized.
public struct AuthorizationRefusal: Error, Sendable {
    /// The problem document of the response, with its status.
    public let problem: ProblemDetails
    /// The value of `WWW-Authenticate` (RFC 9110 section 11.6.1), which a 401 requires; `nil` for a response without
    /// this field.
    public let challenge: String?
    /// The complete response of another server that has decided about the request. If it is `nil`, the response has
    /// ``problem``.
    package let response: Response?

    private init(problem: ProblemDetails, challenge: String?, response: Response? = nil) {
        self.problem = problem
        self.challenge = challenge
        self.response = response
    }

    /// A refusal because no decision is possible.
    init(_ problem: ProblemDetails) { self.init(problem: problem, challenge: nil) }

    /// A refusal with the response of another server.
    package init(_ response: Response) {
        self.init(
            problem: ProblemDetails(
                status: response.status, detail: "The application does not allow this request.", code: "not-allowed"),
            challenge: response.fields["WWW-Authenticate"], response: response)
    }

    /// A refusal because no decision is possible now: 503.
    package static func undecided(code: String, detail: String) -> AuthorizationRefusal {
        AuthorizationRefusal(ProblemDetails(status: 503, detail: detail, code: code))
    }

    /// A refusal of a request without valid credentials: 401.
    public static func unauthenticated(
        code: String, detail: String, challenge: String
    ) -> AuthorizationRefusal {
        AuthorizationRefusal(
            problem: ProblemDetails(status: 401, detail: detail, code: code), challenge: challenge)
    }

    /// A refusal of an operation that the identity may not perform: 403.
    public static func forbidden(code: String, detail: String, challenge: String? = nil) -> AuthorizationRefusal {
        AuthorizationRefusal(
            problem: ProblemDetails(status: 403, detail: detail, code: code), challenge: challenge)
    }

    /// Whether the request may succeed with other credentials.
    var isUnauthenticated: Bool { problem.status == 401 }

    var fields: Fields {
        var fields: Fields = ["Cache-Control": "no-store"]
        if let challenge { fields.append("WWW-Authenticate", challenge) }
        if problem.status == .serviceUnavailable { fields.append("Retry-After", "5") }
        return fields
    }
}

extension Response {
    /// The response to a request that is not authorized.
    init(_ refusal: AuthorizationRefusal) {
        self = refusal.response ?? Response(refusal.problem, fields: refusal.fields)
    }
}

/// Authorizes requests to a server without tokens.
///
/// A web page or a proxy on the same machine can connect to the loopback address, too. So unless anonymous access is
/// allowed, the authority of a request must be localhost or a loopback address (against DNS rebinding). The request
/// must not have forwarding fields. An unsafe request must not come from a page of another origin.
struct AnonymousAuthorizer: Authorizer {
    let isAnonymousAllowed: Bool
    /// Serialized origins whose pages may send unsafe requests; `*` means all.
    let allowedOrigins: [String]

    static let localHosts: Set<String> = ["localhost", "127.0.0.1", "[::1]"]

    func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity {
        guard !isAnonymousAllowed else { return .anonymous }
        let fields = head.fields
        let authority = target.authority ?? fields["Host"] ?? ""
        // HTTP/1.0 does not require Host, and browsers do not use HTTP/1.0.
        if !authority.isEmpty || head.version >= .http11 {
            guard let host = Authority(parsing: authority)?.host, Self.localHosts.contains(host) else {
                throw .forbidden(
                    code: "foreign-host",
                    detail: "Without tokens or --allow-anonymous this server accepts only requests to localhost.")
            }
        }
        // Requests of trusted proxies are rejected, too: a trusted proxy reports the client, but does not authorize it.
        if TrustedProxies.areForwarded(fields) {
            throw .forbidden(
                code: "forwarded-request",
                detail: "Without tokens or --allow-anonymous this server accepts no requests from a proxy.")
        }
        if !head.method.isSafe, let origin = fields["Origin"], !isOwn(origin, authority: authority) {
            throw .forbidden(
                code: "foreign-origin",
                detail: "Pages of this origin are not allowed to change anything on this server; see --cors-origin.")
        }
        return .anonymous
    }

    func refusal(
        of identity: Identity, _ operation: AccessOperation, at path: PathSegments?
    ) -> AuthorizationRefusal? { nil }

    private func isOwn(_ origin: String, authority: String) -> Bool {
        allowedOrigins.contains(origin) || allowedOrigins.contains("*") || origin == "http://\(authority)"
            || origin == "https://\(authority)"
    }
}
