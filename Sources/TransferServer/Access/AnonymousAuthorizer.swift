import HTTPSemantics

/// Lets everybody in who may use a server that knows no tokens.
///
/// A web page or a proxy on the same machine reaches the loopback address, too. So unless everybody is allowed, a request
/// must be addressed to this machine by one of its own names (against DNS rebinding), must not have come through a proxy,
/// and must not be an unsafe one from a foreign page.
struct AnonymousAuthorizer: Authorizer {
    let allowsAnonymous: Bool
    /// Serialized origins whose pages count as our own; `*` stands for all.
    let allowedOrigins: [String]

    static let localHosts: Set<String> = ["localhost", "127.0.0.1", "[::1]"]

    func identify(_ head: RequestHead, target: RequestTarget) throws(AuthorizationRefusal) -> Identity {
        guard !allowsAnonymous else { return .anonymous }
        let fields = head.fields
        let authority = target.authority ?? fields["Host"] ?? ""
        // HTTP/1.0 needs no Host; no browser speaks it.
        if !authority.isEmpty || head.version >= .http11 {
            guard let host = Authority(parsing: authority)?.host.lowercased(), Self.localHosts.contains(host) else {
                throw .forbidden(
                    code: "foreign-host", detail: "Without --allow-anonymous this server answers only for localhost.")
            }
        }
        // Who sent them is no matter: that a proxy is trusted to tell the truth lets nobody in.
        if fields.contains(where: { TrustedProxies.isForwardingField($0.name) }) {
            throw .forbidden(
                code: "forwarded-request",
                detail: "Without --allow-anonymous this server takes no requests from a proxy.")
        }
        if !head.method.isSafe, let origin = fields["Origin"], !isOwn(origin, authority: authority) {
            throw .forbidden(
                code: "foreign-origin",
                detail: "Pages of this origin may not change anything here; see --cors-origin.")
        }
        return .anonymous
    }

    func refusal(
        of identity: Identity, _ operation: Operation, at path: PathSegments?
    ) -> AuthorizationRefusal? { nil }

    private func isOwn(_ origin: String, authority: String) -> Bool {
        allowedOrigins.contains(origin) || allowedOrigins.contains("*") || origin == "http://\(authority)"
            || origin == "https://\(authority)"
    }
}
