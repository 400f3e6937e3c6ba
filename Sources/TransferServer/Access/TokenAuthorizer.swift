import HTTPSemantics
import SystemCalls

/// Authorizes requests by bearer tokens (RFC 6750).
public final class TokenAuthorizer: Authorizer {
    private let list: Monitor<TokenList>
    private let isPublicReadingAllowed: Bool

    /// - Parameters:
    ///   - list: the tokens that are valid now.
    ///   - isPublicReadingAllowed: whether files and listings can be read without a token. The metrics and
    ///     applications behind routes always require a token.
    public init(_ list: TokenList, isPublicReadingAllowed: Bool = false) {
        self.list = Monitor(list)
        self.isPublicReadingAllowed = isPublicReadingAllowed
    }

    /// Replaces the tokens. The new tokens also apply to a request in progress: it is authorized again when its upload
    /// is complete.
    public func replace(with list: TokenList) {
        self.list.withLock { $0 = list }
    }

    /// Returns the principal of the bearer token in `Authorization`. Without this field a `GET` or `HEAD` request may have the
    /// cookie that the server has set for a token.
    /// - Throws: `AuthorizationRefusal` with status 401 if the token is missing or unknown.
    public func identify(
        _ head: RequestHead, target: RequestTarget
    ) throws(AuthorizationRefusal) -> Identity {
        let lines = head.fields.values("Authorization")
        if lines.isEmpty {
            if let known = cookieToken(head) { return identity(of: known, isSession: true) }
            // OPTIONS is not a read operation; a preflight gets its response without credentials.
            guard isPublicReadingAllowed, head.method == .get || head.method == .head else { throw Self.missing }
            return .anonymous
        }
        guard lines.count == 1, let token = Self.bearerToken(lines[0]) else { throw Self.invalid }
        let digest = TokenList.digest(token)
        guard let known = list.withLock({ $0.token(withDigest: digest) }) else { throw Self.invalid }
        return identity(of: known, isSession: false)
    }

    private func cookieToken(_ head: RequestHead) -> TokenList.Token? {
        guard head.fields.contains("Cookie"), SessionCookie.isUsable(in: head) else { return nil }
        let list = list.withLock { $0 }
        return SessionCookie.token(in: head.fields, of: list, now: SystemClock.realtimeSeconds())
    }

    private func identity(of token: TokenList.Token, isSession: Bool) -> Identity {
        var identity = Identity(principal: token.name, credential: token.credential)
        identity.hasOwnCredential = true
        identity.isSession = isSession
        identity.token = token
        return identity
    }

    /// Returns a refusal with 401 if the token does not exist any more, and one with 403 if its scopes or prefixes do
    /// not allow the operation.
    public func refusal(
        of identity: Identity, _ operation: AccessOperation, at path: PathSegments?
    ) -> AuthorizationRefusal? {
        if identity == .anonymous { return isPublicReadingAllowed && operation == .read ? nil : Self.missing }
        let tokens = list.withLock { $0.tokens }
        guard let token = tokens.first(where: { $0.credential == identity.credential }),
            token.name == identity.principal
        else { return Self.invalid }
        if identity.isSession && operation != .read { return Self.missing }
        if operation == .read && isPublicReadingAllowed { return nil }
        guard token.allows(operation) else { return Self.insufficientScope(operation) }
        guard token.covers(path) else { return Self.beyondPrefix }
        return nil
    }

    /// The token in a value of `Authorization` with the scheme `Bearer` in any case (RFC 9110 section 11.4).
    static func bearerToken(_ value: String) -> String? {
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        let token = String(parts[1].drop { $0 == " " })
        return TokenList.isBearerToken(token) ? token : nil
    }

    private static let realm = #"Bearer realm="onward""#

    private static var missing: AuthorizationRefusal {
        .unauthenticated(
            code: "missing-token", detail: "Send a token of this server in the field Authorization: Bearer TOKEN.",
            challenge: realm)
    }

    private static var invalid: AuthorizationRefusal {
        .unauthenticated(
            code: "invalid-token", detail: "This token is not valid. It may have been removed from the server.",
            challenge: realm + #", error="invalid_token""#)
    }

    private static func insufficientScope(_ operation: AccessOperation) -> AuthorizationRefusal {
        let detail =
            switch operation {
            case .read, .readApplication, .readMetrics: "The token does not allow reading."
            case .create: "The token does not allow uploads."
            case .write: "The token does not allow replacing or deleting files."
            case .discover: "The token does not allow this request."
            }
        return .forbidden(
            code: "insufficient-scope", detail: detail, challenge: realm + #", error="insufficient_scope""#)
    }

    /// The refusal of a request for the usage of all principals.
    static var withoutAdministration: AuthorizationRefusal {
        .forbidden(
            code: "insufficient-scope",
            detail: "The usage of all principals requires the scope admin, and a token that is valid for this path.",
            challenge: realm + #", error="insufficient_scope""#)
    }

    private static var beyondPrefix: AuthorizationRefusal {
        .forbidden(
            code: "insufficient-scope", detail: "The token is not valid for this path.",
            challenge: realm + #", error="insufficient_scope""#)
    }
}

extension TokenList.Token {
    func allows(_ operation: AccessOperation) -> Bool {
        switch operation {
        case .discover: true
        case .read, .readApplication, .readMetrics: scopes.contains(.read)
        case .create: scopes.contains(.create) || scopes.contains(.write)
        case .write: scopes.contains(.write)
        }
    }

    /// Whether one of the prefixes covers the path, or the token has no prefixes.
    func covers(_ path: PathSegments?) -> Bool {
        guard let path, !prefixes.isEmpty else { return true }
        return prefixes.contains { $0.covers(path) }
    }
}

extension TokenList.Prefix {
    /// Names are compared byte by byte, as in the file system, without normalization.
    fileprivate func covers(_ path: PathSegments) -> Bool {
        path.segments.count >= segments.count
            && zip(segments, path.segments).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
            // A path that is equal to a prefix without its slash is a file outside the prefix.
            && (path.segments.count > segments.count || path.hasTrailingSlash || isPathItselfIncluded)
    }
}
