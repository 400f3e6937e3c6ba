/// The HTTP version of a message (RFC 9110 §2.5).
public struct ProtocolVersion: Hashable, Comparable, Sendable {
    /// The first digit.
    public let major: Int
    /// The second digit.
    public let minor: Int

    /// Creates a version from its two digits.
    public init(major: Int, minor: Int) {
        self.major = major
        self.minor = minor
    }

    /// HTTP/1.0 (RFC 1945)
    public static let http10 = ProtocolVersion(major: 1, minor: 0)
    /// HTTP/1.1 (RFC 9112)
    public static let http11 = ProtocolVersion(major: 1, minor: 1)

    /// Parses `HTTP-version` of RFC 9112 §2.3: "HTTP/", one digit, a dot, one digit; the name is case-sensitive.
    public init?(parsing text: String) {
        let digits = text.withBytes { bytes -> (UInt8, UInt8)? in
            guard bytes.count == 8, bytes.starts(with: "HTTP/".utf8), bytes[5].isDigit, bytes[6] == UInt8(ascii: "."),
                bytes[7].isDigit
            else { return nil }
            return (bytes[5] - UInt8(ascii: "0"), bytes[7] - UInt8(ascii: "0"))
        }
        guard let (major, minor) = digits else { return nil }
        self.init(major: Int(major), minor: Int(minor))
    }

    /// Compares the major digits, then the minor digits.
    public static func < (left: ProtocolVersion, right: ProtocolVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }
}

extension ProtocolVersion: CustomStringConvertible {
    /// The version as in a message: `HTTP/1.1`.
    public var description: String { "HTTP/\(major).\(minor)" }
}
