import HTTPSemantics

/// A request with a complete head and valid framing.
struct IncomingRequest {
    let id: RequestID
    let head: RequestHead
    let framing: MessageFraming
    let target: RequestTarget
    let origin: RequestOrigin
    let connection: ConnectionEntry
    let interim: InterimChannel
    let account: RequestAccount

    var method: Method { head.method }
    var fields: Fields { head.fields }
    /// The path as received.
    var path: String { target.path }
    /// Whether the client sent the request over https: as a trusted proxy reports, otherwise as the connection is.
    var isSecure: Bool { origin.scheme.map { $0 == "https" } ?? (connection.credentials != nil) }
    /// Whether the end of the connection may be the end of the content (RFC 1945 section 7.2). A server cannot
    /// distinguish that from an interruption.
    var lacksLength: Bool { head.version < .http11 && framing == .none }
    /// Whether content follows the head.
    var expectsContent: Bool {
        switch framing {
        case .none, .length(0): false
        default: true
        }
    }
}

/// The ID of a request in logs: 64 random bits in hexadecimal.
struct RequestID: Sendable, Hashable, CustomStringConvertible {
    let description: String

    init() {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        description = String(repeating: "0", count: 16 - digits.count) + digits
    }
}
