/// The behavior of a proxy during an upload. The table in docs/operating.md has the same values, which a test verifies.
struct ProxyConduct: Sendable {
    /// The interim responses that reach a client.
    enum Interims: String, Sendable {
        /// Each one arrives while content is still being sent.
        case all
        /// All of them arrive together with the final response.
        case late
        case none
    }

    /// The time at which the client receives a final response that the server has sent before the end of the content.
    enum EarlyAnswer: String, Sendable {
        /// The response arrives while the client is still sending.
        case early
        /// The response arrives after all content was sent.
        case afterContent
        /// The response never arrives with curl 7.88: HTTP/2 ends the stream (RST_STREAM, NO_ERROR) while curl is still
        /// sending.
        case lostByCurl
    }

    let interims: Interims
    let earlyAnswer: [WireVersion: EarlyAnswer]
    /// The HTTP versions in which curl repeats a request whose upload another request has taken over: the proxy ends
    /// the stream with REFUSED_STREAM, as if the request had not been processed. As the offset has changed, the
    /// repeated request gets 409.
    var repeatsTakenOver: Set<WireVersion> = []

    static func expected(of proxy: ReverseProxy) -> ProxyConduct? {
        switch proxy {
        case .haproxy:
            ProxyConduct(
                interims: .all, earlyAnswer: [.http1: .early, .http2: .early], repeatsTakenOver: [.http2])
        case .caddy: ProxyConduct(interims: .all, earlyAnswer: [.http1: .early, .http2: .early])
        case .nginx: ProxyConduct(interims: .none, earlyAnswer: [.http1: .early, .http2: .early])
        case .apache: ProxyConduct(interims: .late, earlyAnswer: [.http1: .afterContent, .http2: .afterContent])
        case .nghttpx: ProxyConduct(interims: .all, earlyAnswer: [.http1: .early, .http2: .lostByCurl])
        case .varnish: nil
        }
    }
}
