/// A request method (RFC 9110 §9). Methods are case-sensitive tokens; `get` is not `GET`.
public struct Method: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    public static let get = Method(rawValue: "GET")
    public static let head = Method(rawValue: "HEAD")
    public static let post = Method(rawValue: "POST")
    public static let put = Method(rawValue: "PUT")
    /// RFC 5789
    public static let patch = Method(rawValue: "PATCH")
    public static let delete = Method(rawValue: "DELETE")
    public static let options = Method(rawValue: "OPTIONS")
    public static let connect = Method(rawValue: "CONNECT")
    public static let trace = Method(rawValue: "TRACE")

    /// Whether the method requests no change of state (RFC 9110 §9.2.1): GET, HEAD, OPTIONS and TRACE.
    public var isSafe: Bool {
        self == .get || self == .head || self == .options || self == .trace
    }
}

extension Method: CustomStringConvertible {
    public var description: String { rawValue }
}
