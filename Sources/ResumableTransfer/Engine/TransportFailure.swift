import HTTPSemantics
import ResumableUpload
import SystemCalls

/// Why an exchange has no complete response.
enum TransportFailure: Error, Sendable, Hashable {
    /// The host's address could not be found.
    case resolve
    /// No connection was made. The peer is a host and a port; nil if libcurl does not name it.
    case connect(to: String?, reason: String)
    /// No connection was made, including its TLS handshake, within ``TransportRequest/stallTimeout``.
    case connectStalled
    case proxy(ProxyFailure)
    /// No secure connection was made, for example because the certificate is not trusted.
    case tls(String)
    /// The connection ended before the exchange had ended. `code` is the error code of libcurl.
    case connectionLost(code: Int32, message: String)
    /// No data was transferred during ``TransportRequest/stallTimeout``.
    case stalled
    case cancelled
    /// The source returned no byte at this offset.
    case sourceFailed(at: Int64, SourceError)
    case sinkFailed(Errno)
    /// The URI scheme is neither http nor https.
    case unsupportedURI
    /// The method or a field cannot be sent: it could split the message.
    case invalidRequest
    case tooManyRedirects
    /// The response is not HTTP, or its head is invalid.
    case protocolViolation(String)
}

/// The reason why a request through a proxy failed. Except for `stalled`, the server has received nothing of the
/// request.
enum ProxyFailure: Sendable, Hashable {
    /// The URL of the proxy has a form or a scheme that cannot be used.
    case unusable
    /// The proxy was not found, or it violates the protocol.
    case failed(String)
    /// The proxy answered the request for a tunnel (CONNECT) with this status.
    case refused(Int)
    /// The proxy at this host and port did not make the connection in time.
    case silent(String)
    /// The request was sent to the proxy at this host and port, and no response arrived within
    /// ``TransportRequest/stallTimeout``.
    case stalled(String)
}

extension ProxyFailure {
    /// Whether another attempt would end in the same way.
    var isPermanent: Bool {
        switch self {
        case .unusable: true
        case .refused(let status): !Status(rawValue: status).isTransient
        case .failed, .silent, .stalled: false
        }
    }
}

extension TransportFailure {
    /// The interruption of a transfer that this failure causes.
    var interruption: ClientInterruption {
        switch self {
        case .proxy(let proxy) where proxy.isPermanent: .unusableConnection
        case .stalled, .proxy(.stalled): .stall
        case .resolve, .connect, .connectStalled, .proxy: .unreachable
        case .connectionLost, .cancelled, .sourceFailed, .sinkFailed: .connection
        case .tls, .invalidRequest, .unsupportedURI, .tooManyRedirects, .protocolViolation: .unusableConnection
        }
    }
}
