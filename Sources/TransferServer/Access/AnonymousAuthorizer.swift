import HTTPSemantics

/// Authorizes requests to a server without tokens.
///
/// A web page or a proxy on the same machine can connect to the loopback address, too. So unless anonymous access is
/// allowed, the authority of a request must be localhost or a loopback address (against DNS rebinding), the request
/// must not have forwarding fields, and an unsafe request must not come from a page of another origin.
struct AnonymousAuthorizer: Authorizer {
    let allowsAnonymous: Bool
    /// Serialized origins whose pages may send unsafe requests; `*` means all.
    let allowedOrigins: [String]

    static let localHosts: Set<String> = ["localhost", "127.0.0.1", "[::1]"]

    func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity {
        guard !allowsAnonymous else { return .anonymous }
        let fields = head.fields
        let authority = target.authority ?? fields["Host"] ?? ""
        // HTTP/1.0 does not require Host, and browsers do not use HTTP/1.0.
        if !authority.isEmpty || head.version >= .http11 {
            guard let host = Authority(parsing: authority)?.host, Self.localHosts.contains(host) else {
                throw .forbidden(
                    code: "foreign-host",
                    detail: "Without --allow-anonymous this server accepts only requests to localhost.")
            }
        }
        // Requests of trusted proxies are rejected, too: a trusted proxy reports the client, but does not authorize it.
        if TrustedProxies.areForwarded(fields) {
            throw .forbidden(
                code: "forwarded-request",
                detail: "Without --allow-anonymous this server accepts no requests from a proxy.")
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
