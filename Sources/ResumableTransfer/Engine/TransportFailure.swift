import SystemCalls

/// Why an exchange has no complete response.
enum TransportFailure: Error, Sendable, Hashable {
    /// The host's address could not be found.
    case resolve
    /// No connection: who did not answer, as host and port, where libcurl names somebody, and why.
    case connect(to: String?, reason: String)
    /// No connection, or no end of its TLS handshake, within ``TransportRequest/stallTimeout``.
    case connectStalled
    /// The proxy was not found, or it refused.
    case proxy
    /// No secure connection, or the certificate is not to be trusted.
    case tls(String)
    /// The connection ended before the exchange did. `code` is libcurl's.
    case connectionLost(code: Int32, message: String)
    /// Nothing moved for ``TransportRequest/stallTimeout``.
    case stalled
    case cancelled
    /// The source gave no byte at this offset.
    case sourceFailed(at: Int64, Errno?)
    case sinkFailed(Errno)
    /// The URI is none of http or https.
    case unsupportedURI
    /// The method or a field cannot be sent: it could split the message.
    case invalidRequest
    case tooManyRedirects
    /// The response is not HTTP, or its head is out of bounds.
    case protocolViolation(String)
}
