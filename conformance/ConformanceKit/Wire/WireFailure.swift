import SystemCalls

/// What keeps a response from being read.
package enum WireFailure: Error, Sendable, Hashable {
    case cannotConnect(Errno)
    /// The TLS handshake failed, or the certificate is not believed.
    case notSecured(String)
    /// Nothing came, or not all of it, in time. The text says what was waited for.
    case timedOut(String)
    /// The peer ended the connection in an orderly way.
    case closed(String)
    case reset(String)
    /// More bytes came than are needed.
    case flood(String)
    /// What came is no HTTP.
    case malformed(String)
}

extension WireFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .cannotConnect(let error): "no connection: \(error)"
        case .notSecured(let reason): "no TLS: \(reason)"
        case .timedOut(let what): "silence until the deadline while \(what)"
        case .closed(let what): "the connection was closed while \(what)"
        case .reset(let what): "the connection was reset while \(what)"
        case .flood(let what): "a flood: \(what)"
        case .malformed(let what): "no HTTP: \(what)"
        }
    }
}
