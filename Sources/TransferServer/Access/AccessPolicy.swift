import HTTPSemantics

/// Who may use a server that knows no tokens.
///
/// A web page or a proxy on the same machine reaches the loopback address, too. So unless everybody is allowed, a request
/// must be addressed to this machine by one of its own names (against DNS rebinding), must not have come through a proxy,
/// and must not be an unsafe one from a foreign page.
struct AccessPolicy: Sendable {
    let allowsAnonymous: Bool
    /// Serialised origins whose pages count as our own; `*` stands for all.
    let allowedOrigins: [String]

    static let localHosts: Set<String> = ["localhost", "127.0.0.1", "[::1]"]
    static let forwardingFields = [
        "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via",
    ]

    func refusal(of head: RequestHead, target: RequestTarget) -> ProblemDetails? {
        guard !allowsAnonymous else { return nil }
        let fields = head.fields
        let authority = target.authority ?? fields["Host"] ?? ""
        // HTTP/1.0 needs no Host; no browser speaks it.
        if !authority.isEmpty || head.version >= .http11 {
            guard let host = Authority(parsing: authority)?.host.lowercased(), Self.localHosts.contains(host) else {
                return .forbidden("foreign-host", "Without --allow-anonymous this server answers only for localhost.")
            }
        }
        if Self.forwardingFields.contains(where: fields.contains) {
            return .forbidden(
                "forwarded-request", "Without --allow-anonymous this server takes no requests from a proxy.")
        }
        if !head.method.isSafe, let origin = fields["Origin"], !isOwn(origin, authority: authority) {
            return .forbidden(
                "foreign-origin", "Pages of this origin may not change anything here; see --cors-origin.")
        }
        return nil
    }

    private func isOwn(_ origin: String, authority: String) -> Bool {
        allowedOrigins.contains(origin) || allowedOrigins.contains("*") || origin == "http://\(authority)"
            || origin == "https://\(authority)"
    }
}
