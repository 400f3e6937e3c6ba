/// A request target in origin-form, absolute-form or asterisk-form (RFC 9112 §3.2).
///
/// Path and query are not decoded; ``PathSegments`` decodes and verifies the path. Only bytes that no target can have
/// are rejected here: "#", and every byte that is not visible ASCII.
public struct RequestTarget: Sendable, Hashable {
    /// The forms of request targets (RFC 9112 §3.2). The authority-form of CONNECT is not supported.
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
    /// `http` or `https` of an absolute-form target, else nil.
    public let scheme: String?
    /// The authority of an absolute-form target, unchanged; otherwise nil. It takes precedence over Host (RFC 9112
    /// §3.2.2).
    public let authority: String?
    /// The raw path, which begins with "/"; "/" when an absolute-form target has none; "*" for asterisk-form.
    public let path: String
    /// The text after the first "?"; nil if there is none.
    public let query: String?

    /// Parses a raw request target; nil when it has none of the three forms, when an absolute-form target has another
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
