import SystemCalls

/// How connections are made.
struct TransportSettings: Sendable {
    /// Path of a PEM file with certificate authorities to trust besides the system's.
    var caFile: FilePath?
    /// URI of a proxy; nil: what the environment says (`http_proxy`, `https_proxy`, `no_proxy`); empty: none.
    var proxy: String?
    var httpVersion: HTTPVersion
    /// From the search for the address to the end of the TLS handshake.
    var connectTimeout: Duration
}
