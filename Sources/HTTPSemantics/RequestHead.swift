/// The part of a request before its content: the request line and the header section (RFC 9112 §3).
public struct RequestHead: Sendable, Hashable {
    /// The request method.
    public var method: Method
    /// The request target as it was received; see ``RequestTarget``.
    public var target: String
    /// The HTTP version of the request.
    public var version: ProtocolVersion
    /// The header section.
    public var fields: Fields

    /// Creates a head from its parts, which are not verified.
    public init(method: Method, target: String, version: ProtocolVersion = .http11, fields: Fields = Fields()) {
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
    }
}
