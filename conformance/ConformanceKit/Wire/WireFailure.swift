import SystemCalls

/// The reason why a connection could not be opened, or why a response could not be read.
package enum WireFailure: Error, Sendable, Hashable {
    case cannotConnect(SocketAddress, Errno)
    /// The TLS handshake failed, or the certificate is not trusted.
    case notSecured(String)
    /// The deadline passed. The text names the operation.
    case timedOut(String)
    /// The peer closed the connection without a reset. The text names the operation.
    case closed(String)
    /// The peer reset the connection. The text names the operation.
    case reset(String)
    /// The peer sent more than the harness reads.
    case flood(String)
    /// The received bytes are not valid HTTP.
    case malformed(String)
}

extension WireFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .cannotConnect(let address, let error):
            "the connection could not be opened: \(address.explanation(of: error))"
        case .notSecured(let reason): "no TLS: \(reason)"
        case .timedOut(let what): "timeout while \(what)"
        case .closed(let what): "the connection was closed while \(what)"
        case .reset(let what): "the connection was reset while \(what)"
        case .flood(let what): "too much data: \(what)"
        case .malformed(let what): "invalid HTTP: \(what)"
        }
    }
}
