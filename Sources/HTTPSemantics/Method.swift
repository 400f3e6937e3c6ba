/// A request method (RFC 9110 §9). Methods are case-sensitive tokens; `get` is not `GET`.
public struct Method: RawRepresentable, Hashable, Sendable {
    /// The method as it is sent.
    public let rawValue: String

    /// Creates a method from its name, which is not verified.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// RFC 9110 §9.3.1
    public static let get = Method(rawValue: "GET")
    /// RFC 9110 §9.3.2
    public static let head = Method(rawValue: "HEAD")
    /// RFC 9110 §9.3.3
    public static let post = Method(rawValue: "POST")
    /// RFC 9110 §9.3.4
    public static let put = Method(rawValue: "PUT")
    /// RFC 5789
    public static let patch = Method(rawValue: "PATCH")
    /// RFC 9110 §9.3.5
    public static let delete = Method(rawValue: "DELETE")
    /// RFC 9110 §9.3.7
    public static let options = Method(rawValue: "OPTIONS")
    /// RFC 9110 §9.3.6
    public static let connect = Method(rawValue: "CONNECT")
    /// RFC 9110 §9.3.8
    public static let trace = Method(rawValue: "TRACE")

    /// Whether the method requests no change of state (RFC 9110 §9.2.1): GET, HEAD, OPTIONS and TRACE.
    public var isSafe: Bool {
        self == .get || self == .head || self == .options || self == .trace
    }
}

extension Method: CustomStringConvertible {
    /// The method as it is sent.
    public var description: String { rawValue }
}
