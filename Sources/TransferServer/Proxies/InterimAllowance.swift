import HTTPSemantics

/// How many interim responses a request may get.
enum InterimAllowance {
    /// What Go's HTTP client, and proxies made with it (Caddy, Traefik), take: with the sixth they end the request.
    private static let maxResponses = 5

    /// Interim responses that tell offsets, beside the one that names the upload and a possible 100; `nil`: any number.
    ///
    /// Whether it is Go that a request came through cannot be seen, so it is supposed of every proxy.
    static func offsets(for fields: Fields) -> Int? {
        let isForwarded = ["Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"].contains {
            fields.contains($0)
        }
        let isGo = fields["User-Agent"]?.hasPrefix("Go-http-client/") == true
        return isForwarded || isGo ? maxResponses - 2 : nil
    }
}
