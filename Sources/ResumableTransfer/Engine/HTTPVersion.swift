/// Which version of HTTP a client speaks.
public enum HTTPVersion: Sendable, Hashable {
    /// HTTP/2 where TLS negotiates it and libcurl carries uploads in it faultlessly (8.7 and later), else HTTP/1.1.
    case automatic
    case http1
    /// HTTP/2: negotiated by TLS with HTTP/1.1 to fall back on; without TLS from the first byte on (RFC 9113 §3.3).
    case http2
}
