/// A status code (RFC 9110 §15). Any number can be represented; HTTP allows 100…599.
public struct Status: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral {
    /// The number of the status code.
    public let rawValue: Int

    /// Creates a status code from its number.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// Creates a status code from a literal number.
    public init(integerLiteral value: Int) {
        rawValue = value
    }

    /// 1xx: an interim response.
    public var isInformational: Bool { (100..<200).contains(rawValue) }
    /// 2xx
    public var isSuccessful: Bool { (200..<300).contains(rawValue) }
    /// 3xx
    public var isRedirection: Bool { (300..<400).contains(rawValue) }
    /// 4xx
    public var isClientError: Bool { (400..<500).contains(rawValue) }
    /// 5xx
    public var isServerError: Bool { (500..<600).contains(rawValue) }

    /// Whether a response with this status never has content, whatever the method was: 1xx, 204 and 304
    /// (RFC 9112 §6.3).
    public var forbidsContent: Bool { isInformational || self == .noContent || self == .notModified }
}

extension Status: CustomStringConvertible {
    /// The number in decimal digits.
    public var description: String { String(rawValue) }
}
