/// The part of a request before its content: the request line and the header section (RFC 9112 section 3).
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

/// A request method (RFC 9110 section 9). Methods are case-sensitive tokens; `get` is not `GET`.
public struct Method: RawRepresentable, Hashable, Sendable {
    /// The method as it is sent.
    public let rawValue: String

    /// Creates a method from its name, which is not verified.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// RFC 9110 section 9.3.1
    public static let get = Method(rawValue: "GET")
    /// RFC 9110 section 9.3.2
    public static let head = Method(rawValue: "HEAD")
    /// RFC 9110 section 9.3.3
    public static let post = Method(rawValue: "POST")
    /// RFC 9110 section 9.3.4
    public static let put = Method(rawValue: "PUT")
    /// RFC 5789
    public static let patch = Method(rawValue: "PATCH")
    /// RFC 9110 section 9.3.5
    public static let delete = Method(rawValue: "DELETE")
    /// RFC 9110 section 9.3.7
    public static let options = Method(rawValue: "OPTIONS")
    /// RFC 9110 section 9.3.6
    public static let connect = Method(rawValue: "CONNECT")
    /// RFC 9110 section 9.3.8
    public static let trace = Method(rawValue: "TRACE")

    /// Whether the method requests no change of state (RFC 9110 section 9.2.1): GET, HEAD, OPTIONS and TRACE.
    public var isSafe: Bool {
        self == .get || self == .head || self == .options || self == .trace
    }

    /// Whether several identical requests have the same effect as one (RFC 9110 section 9.2.2): safe methods, PUT and
    /// DELETE.
    package var isIdempotent: Bool { isSafe || self == .put || self == .delete }
}

extension Method: CustomStringConvertible {
    /// The method as it is sent.
    public var description: String { rawValue }
}

/// The HTTP version of a message (RFC 9110 section 2.5).
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

    /// Parses `HTTP-version` of RFC 9112 section 2.3: "HTTP/", one digit, a dot, one digit; the name is case-sensitive.
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

/// A request target in origin-form, absolute-form or asterisk-form (RFC 9112 section 3.2).
///
/// Path and query are not decoded; ``PathSegments`` decodes and verifies the path. Only bytes that no target can have
/// are rejected here: "#", and every byte that is not visible ASCII.
public struct RequestTarget: Sendable, Hashable {
    /// The forms of request targets (RFC 9112 section 3.2). The authority-form of CONNECT is not supported.
    public enum Form: Sendable, Hashable {
        /// `/path?query`
        case origin
        /// `http://host/path?query`
        case absolute
        /// `*`, for OPTIONS
        case asterisk
    }

    /// The form of this target.
    public let form: Form
    /// `http` or `https` of an absolute-form target, else `nil`.
    public let scheme: String?
    /// The authority of an absolute-form target, unchanged; otherwise `nil`. It takes precedence over Host (RFC 9112
    /// section 3.2.2).
    public let authority: String?
    /// The raw path, which begins with "/"; "/" when an absolute-form target has none; "*" for asterisk-form.
    public let path: String
    /// The text after the first "?"; `nil` if there is none.
    public let query: String?

    /// Parses a raw request target; `nil` when it has none of the three forms, when an absolute-form target has another
    /// scheme than http(s), or when its authority is invalid or carries user information.
    public init?(parsing target: String) {
        if target.utf8.first == UInt8(ascii: "/") {
            guard target.withBytes({ $0.allSatisfy(\.isTargetCharacter) }) else { return nil }
            self.init(origin: target)
            return
        }
        let bytes = Array(target.utf8)
        guard !bytes.isEmpty, bytes.allSatisfy(\.isTargetCharacter) else { return nil }
        if target == "*" {
            self.init(form: .asterisk, scheme: nil, authority: nil, remaining: bytes[...])
        } else {
            let text = target.asciiLowercased
            guard let scheme = ["http", "https"].first(where: { text.hasPrefix($0 + "://") }) else { return nil }
            let remaining = bytes[(scheme.utf8.count + 3)...]
            let end = remaining.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? remaining.endIndex
            let authority = String(decoding: remaining[..<end], as: UTF8.self)
            guard Authority(parsing: authority) != nil else { return nil }
            self.init(form: .absolute, scheme: scheme, authority: authority, remaining: remaining[end...])
        }
    }

    /// - Parameter target: a path that begins with "/", with or without a query.
    private init(origin target: String) {
        let mark = target.utf8.firstIndex(of: UInt8(ascii: "?"))
        (form, scheme, authority) = (.origin, nil, nil)
        path = mark.map { String(target[..<$0]) } ?? target
        query = mark.map { String(target[target.utf8.index(after: $0)...]) }
    }

    private init(form: Form, scheme: String?, authority: String?, remaining: ArraySlice<UInt8>) {
        let mark = remaining.firstIndex(of: UInt8(ascii: "?"))
        let path = remaining[..<(mark ?? remaining.endIndex)]
        self.form = form
        self.scheme = scheme
        self.authority = authority
        self.path = path.isEmpty ? "/" : String(decoding: path, as: UTF8.self)
        query = mark.map { String(decoding: remaining[($0 + 1)...], as: UTF8.self) }
    }
}

extension UInt8 {
    /// A visible ASCII character other than "#".
    fileprivate var isTargetCharacter: Bool { (0x21...0x7E).contains(self) && self != UInt8(ascii: "#") }
}

/// `uri-host [ ":" port ]`: the value of Host and the authority of an absolute-form target, without user information
/// (RFC 9110 section 4.2, section 7.2; RFC 3986 section 3.2).
package struct Authority: Sendable, Hashable {
    /// A registered name, an IPv4 address or an IP literal with its brackets; ASCII letters in lower case, never empty.
    package let host: String
    /// The port, 0…65535; `nil` when it is absent or empty, which means the default port of the scheme.
    package let port: Int?

    /// Parses an authority. Returns `nil` for user information (RFC 9110 section 4.2.4) and for an empty host, which
    /// "http" and "https" URIs must not have (RFC 9110 section 4.2.1).
    package init?(parsing text: String) {
        var scanner = FieldValueScanner(text)
        let name: ArraySlice<UInt8>
        if scanner.next == UInt8(ascii: "[") {
            name = scanner.run { $0 != UInt8(ascii: "]") }
            guard scanner.consume("]"), Authority.isLiteralAddress(name.dropFirst()) else { return nil }
        } else {
            name = scanner.run { $0 != UInt8(ascii: ":") }
            guard Authority.isRegisteredName(name) else { return nil }
        }
        var host = String(decoding: name, as: UTF8.self).asciiLowercased
        if name.first == UInt8(ascii: "[") { host += "]" }
        self.host = host

        if scanner.isAtEnd {
            port = nil
            return
        }
        guard scanner.consume(":") else { return nil }
        if scanner.isAtEnd {
            port = nil
            return
        }
        guard let digits = scanner.digits(), scanner.isAtEnd, digits.count <= 5 else { return nil }
        let number = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        guard number <= 65535 else { return nil }
        port = number
    }

    /// The canonical text: host, and `:port` when there is one.
    package var serialized: String { port.map { "\(host):\($0)" } ?? host }

    /// Returns whether `name` is a non-empty `reg-name` of RFC 3986 section 3.2.2. An IPv4 address is a `reg-name`,
    /// too.
    private static func isRegisteredName(_ name: ArraySlice<UInt8>) -> Bool {
        guard !name.isEmpty else { return false }
        var index = name.startIndex
        while index < name.endIndex {
            if name[index] == UInt8(ascii: "%") {
                guard index + 2 < name.endIndex, name[index + 1].hexDigitValue != nil,
                    name[index + 2].hexDigitValue != nil
                else { return false }
                index += 3
            } else {
                guard name[index].isUnreserved || name[index].isSubDelimiter else { return false }
                index += 1
            }
        }
        return true
    }

    /// Returns whether `address` is an `IPv6address` or `IPvFuture` of RFC 3986 section 3.2.2 without a zone
    /// identifier.
    private static func isLiteralAddress(_ address: ArraySlice<UInt8>) -> Bool {
        if address.first == UInt8(ascii: "v") || address.first == UInt8(ascii: "V") {
            let parts = address.dropFirst().split(
                separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
            return parts.count == 2 && !parts[0].isEmpty && parts[0].allSatisfy { $0.hexDigitValue != nil }
                && !parts[1].isEmpty
                && parts[1].allSatisfy { $0.isUnreserved || $0.isSubDelimiter || $0 == UInt8(ascii: ":") }
        }
        return IPAddress(v6: address) != nil
    }
}
