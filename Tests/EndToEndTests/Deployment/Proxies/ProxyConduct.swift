/// What a proxy does to an upload. docs/operating.md has it as a table; a test fails where it is not so.
struct ProxyConduct: Sendable {
    /// Which of the interim responses reach a client.
    enum Interims: String, Sendable {
        /// Each one while content is still on its way.
        case all
        /// All of them together with the final response.
        case late
        case none
    }

    /// What becomes of a final response that the server gives while content is still on its way.
    enum EarlyAnswer: String, Sendable {
        /// It reaches the client while it sends.
        case early
        /// It reaches the client behind the content.
        case afterContent
        /// curl 7.88 loses it: HTTP/2 ends the stream with it (RST_STREAM, NO_ERROR), while curl still sends.
        case lostByCurl
    }

    let interims: Interims
    let earlyAnswer: [WireVersion: EarlyAnswer]
    /// Where curl repeats a request whose upload another one has taken over: the proxy ends its stream as one that nobody
    /// has seen (REFUSED_STREAM). The offset has moved meanwhile, so it gets 409.
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
