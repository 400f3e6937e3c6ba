import HTTPSemantics

/// A request whose head is complete and whose framing can be believed.
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
    /// The raw path; `*` has none.
    var path: String { target.path }
    /// Whether the client sent the request over https: as a trusted proxy reports, otherwise as the connection is.
    var isSecure: Bool { origin.scheme.map { $0 == "https" } ?? (connection.credentials != nil) }
    /// Whether the client may mean that its content ends with the connection (RFC 1945 section 7.2), which HTTP/1.1 servers cannot
    /// tell from a content that was cut.
    var lacksLength: Bool { head.version < .http11 && framing == .none }
    /// Whether content is still to come after the head.
    var expectsContent: Bool {
        switch framing {
        case .none, .length(0): false
        default: true
        }
    }
}

/// A name for one request in logs and responses: 64 random bits in hexadecimal.
struct RequestID: Sendable, Hashable, CustomStringConvertible {
    let description: String

    init() {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        description = String(repeating: "0", count: 16 - digits.count) + digits
    }
}
