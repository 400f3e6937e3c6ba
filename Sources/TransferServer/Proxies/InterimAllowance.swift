import HTTPSemantics

/// The maximum number of interim responses to a request.
enum InterimAllowance {
    /// Go's HTTP client, and proxies that use it (Caddy, Traefik), accept at most 5 interim responses, and abort the
    /// request at the sixth.
    private static let maxResponses = 5

    /// The maximum number of interim responses with offsets, in addition to the one with the URL of the upload and a
    /// possible 100; `nil`: any number.
    ///
    /// The limit applies to every proxy, because the server cannot see whether it is written in Go.
    static func offsets(for fields: Fields) -> Int? {
        let isForwarded = ["Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"].contains {
            fields.contains($0)
        }
        let isGo = fields["User-Agent"]?.hasPrefix("Go-http-client/") == true
        return isForwarded || isGo ? maxResponses - 2 : nil
    }
}
