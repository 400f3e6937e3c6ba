import HTTPSemantics
import SystemCalls

/// Begins and ends the session of a browser. `POST` reports what a token allows, and sets the cookie with which the
/// browser reads files; `DELETE` removes the cookie. Only pages of the server's own origin may use it.
struct SessionEndpoint {
    let service: TransferService
    let request: RequestContext
    let target: RequestTarget

    func response() -> Response {
        let shouldBegin = request.method == .post
        guard shouldBegin || request.method == .delete else {
            return Response(ProblemDetails.methodNotAllowed, fields: ["Allow": "POST, DELETE"])
        }
        guard RequestSource(request, target).isOwnPage else { return Response(ProblemDetails.foreignSession) }
        return shouldBegin ? begin() : end()
    }

    private func begin() -> Response {
        // A session cannot extend itself: a new cookie needs the token again.
        request.removeSessionCookie()
        var head = request.head
        // The request changes nothing on the server, so the permission to read is sufficient.
        head.method = .get
        let identity: Identity
        do throws(AuthorizationRefusal) { identity = try service.identity(of: head, target) } catch {
            return Response(error)
        }
        request.principal = identity.principal
        let access = SessionAccess(of: identity, routes: service.routes, base: request.origin.base) { operation, path in
            service.refusal(of: identity, operation, at: path) == nil
        }
        var fields = Self.fields
        let value = identity.token.flatMap { _ in cookie(of: identity.principal) }
        if let value { fields.append("Set-Cookie", cookieField(value)) }
        return Response(
            status: 200, fields: fields, content: access.json(expires: value == nil ? nil : SessionCookie.lifetime))
    }

    private func end() -> Response {
        var fields = Self.fields
        fields.remove("Content-Type")
        fields.append("Set-Cookie", cookieField(nil))
        return Response(status: 204, fields: fields)
    }

    private func cookie(of principal: String) -> String? {
        request.fields["Authorization"].flatMap(TokenAuthorizer.bearerToken).flatMap {
            SessionCookie.value(
                forToken: $0, of: principal, expiry: SystemClock.realtimeSeconds() + SessionCookie.lifetime)
        }
    }

    private func cookieField(_ value: String?) -> String {
        SessionCookie.field(
            value, path: request.origin.base.path + service.routes.ownBase + "files/",
            isSecure: RequestSource(request, target).isSecure)
    }

    private static let fields: Fields = [
        "Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
    ]
}

/// The page that has sent a request, as far as the browser reports it.
struct RequestSource {
    private let fields: Fields
    /// The scheme and the authority with which the client reaches the server.
    private let scheme: String
    private let authority: String?

    init(_ request: RequestContext, _ target: RequestTarget) {
        let known = request.origin.base.origin
        self.init(
            request.fields, scheme: known?.scheme ?? (request.isSecure ? "https" : "http"),
            authority: known?.authority ?? request.origin.host?.serialized ?? target.authority
                ?? request.fields["Host"])
    }

    init(_ fields: Fields, scheme: String, authority: String?) {
        self.fields = fields
        self.scheme = scheme
        self.authority = authority
    }

    var isSecure: Bool { scheme == "https" }

    /// Whether a page of the server's own origin has sent the request. `Sec-Fetch-Site` decides if it is present, because
    /// browsers, which alone set it, compare the origins themselves; a proxy may change the authority.
    var isOwnPage: Bool {
        let site = fields.values("Sec-Fetch-Site")
        if !site.isEmpty { return site == ["same-origin"] }
        return origin.map { fields.values("Origin") == [$0] } ?? false
    }

    /// The serialized origin of the server (RFC 6454 section 6.2).
    private var origin: String? {
        guard let authority = authority.flatMap(Authority.init(parsing:)) else { return nil }
        let isDefault = authority.port == (isSecure ? 443 : 80)
        return scheme + "://" + (isDefault ? authority.host : authority.serialized)
    }
}

/// The operations on files that the sender of a request may perform. The page gets them in the response that begins its
/// session.
struct SessionAccess {
    private let principal: String
    /// The paths for which the token is valid, as the client requests them; empty: all paths, or none if ``scopes`` has
    /// neither `read` nor `create` nor `write`.
    private let prefixes: [String]
    private let scopes: [TokenScope]

    /// - Parameter isAllowed: whether an operation at a path is allowed.
    init(
        of identity: Identity, routes: Routes, base: PublicBase, isAllowed: (AccessOperation, PathSegments?) -> Bool
    ) {
        principal = identity.principal
        let files = try? PathSegments(decoding: routes.ownBase + "files/")
        let token = identity.token
        var paths: [PathSegments] = []
        if let token, !token.covers(files) {
            paths = token.prefixes.filter { $0.segments.starts(with: files?.segments ?? []) }
                .compactMap { try? PathSegments(segments: $0.segments, hasTrailingSlash: !$0.isPathItselfIncluded) }
        }
        prefixes = paths.map { base.path + $0.percentEncoded }
        let place = paths.first ?? files
        var scopes: [TokenScope] = []
        for (scope, operation) in [(TokenScope.read, AccessOperation.read), (.create, .create), (.write, .write)]
        where isAllowed(operation, place) {
            scopes.append(scope)
        }
        if let token, token.allowsReadingUsage(at: routes.usagePath) { scopes.append(.admin) }
        self.scopes = scopes
    }

    /// - Parameter expires: the seconds after which the cookie is invalid; `nil` if there is no cookie.
    func json(expires: Int64?) -> [UInt8] {
        var bytes = Array("{\"principal\":".utf8)
        bytes.appendJSON(principal)
        for (name, values) in [("scopes", scopes.map(\.rawValue)), ("prefixes", prefixes)] {
            bytes += ",\"\(name)\":[".utf8
            for (index, value) in values.enumerated() {
                if index > 0 { bytes += ",".utf8 }
                bytes.appendJSON(value)
            }
            bytes += "]".utf8
        }
        bytes += ",\"expires\":\(expires.map { String($0) } ?? "null")}".utf8
        return bytes
    }
}

extension TokenList.Token {
    /// Whether the token allows reading the usage of all principals.
    /// - Parameter path: the path of this usage.
    func allowsReadingUsage(at path: PathSegments?) -> Bool { scopes.contains(.admin) && covers(path) }
}

extension ProblemDetails {
    fileprivate static let foreignSession = ProblemDetails(
        status: 403, detail: "Only a page of this server's own origin can begin or end a session.",
        code: "foreign-origin")
}
