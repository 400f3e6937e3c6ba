/// The HTTP version of a message (RFC 9110 §2.5).
public struct ProtocolVersion: Hashable, Comparable, Sendable {
    public let major: Int
    public let minor: Int

    public init(major: Int, minor: Int) {
        self.major = major
        self.minor = minor
    }

    public static let http10 = ProtocolVersion(major: 1, minor: 0)
    public static let http11 = ProtocolVersion(major: 1, minor: 1)

    /// Parses `HTTP-version` of RFC 9112 §2.3: "HTTP/", one digit, a dot, one digit; the name is case-sensitive.
    public init?(parsing text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 8, bytes.starts(with: "HTTP/".utf8), bytes[5].isDigit, bytes[6] == 0x2E, bytes[7].isDigit
        else { return nil }
        self.init(major: Int(bytes[5] - 0x30), minor: Int(bytes[7] - 0x30))
    }

    public static func < (left: ProtocolVersion, right: ProtocolVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }
}

extension ProtocolVersion: CustomStringConvertible {
    /// The version as in a message: `HTTP/1.1`.
    public var description: String { "HTTP/\(major).\(minor)" }
}
