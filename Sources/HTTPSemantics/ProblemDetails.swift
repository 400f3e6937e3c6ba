/// A problem document (RFC 9457 section 3).
public struct ProblemDetails: Sendable {
    /// The value of an extension member.
    public enum Value: Sendable, Hashable {
        case integer(Int64)
        case string(String)
        case boolean(Bool)
        case strings([String])
    }

    /// A URI reference that identifies the problem type; `about:blank` means that the status alone describes the
    /// problem.
    public var type: String
    /// A summary of the problem type, the same for all occurrences (RFC 9457 section 3.1.3).
    public var title: String
    /// The status of the response (RFC 9457 section 3.1.2).
    public var status: Status
    /// An explanation of this occurrence, for people.
    public var detail: String?
    /// The stable code of this error, the same as in log and metrics: an extension member named "code".
    public var code: String?
    /// Further extension members, in order.
    public var members: [(String, Value)]

    /// Creates a problem document. The other parameters are described at the properties.
    /// - Parameter title: If `nil`, the title is the reason phrase, as RFC 9457 section 4.2.1 recommends for
    ///   `about:blank`.
    public init(
        type: String = "about:blank", title: String? = nil, status: Status, detail: String? = nil, code: String? = nil,
        members: [(String, Value)] = []
    ) {
        self.type = type
        self.title = title ?? status.reasonPhrase
        self.status = status
        self.detail = detail
        self.code = code
        self.members = members
    }

    /// The Content-Type of ``json()``.
    public static let mediaType = "application/problem+json"

    /// The document as JSON in UTF-8, on one line, with the members type, title, status, code, detail and then the
    /// extension members. If several members have the same name, only the first is written.
    public func json() -> [UInt8] {
        var all: [(String, Value)] = [
            ("type", .string(type)), ("title", .string(title)), ("status", .integer(Int64(status.rawValue))),
        ]
        if let code { all.append(("code", .string(code))) }
        if let detail { all.append(("detail", .string(detail))) }
        all += members
        var names: Set<String> = []
        var bytes: [UInt8] = []
        for (name, value) in all where names.insert(name).inserted {
            bytes.append(bytes.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
            bytes.appendJSON(name)
            bytes.append(UInt8(ascii: ":"))
            switch value {
            case .integer(let number): bytes += String(number).utf8
            case .string(let text): bytes.appendJSON(text)
            case .boolean(let flag): bytes += (flag ? "true" : "false").utf8
            case .strings(let texts):
                bytes.append(UInt8(ascii: "["))
                for (index, text) in texts.enumerated() {
                    if index > 0 { bytes.append(UInt8(ascii: ",")) }
                    bytes.appendJSON(text)
                }
                bytes.append(UInt8(ascii: "]"))
            }
        }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }
}

extension [UInt8] {
    /// Appends a JSON string (RFC 8259 section 7): quote, backslash and the controls below U+0020 are escaped; all
    /// other characters are unchanged.
    package mutating func appendJSON(_ string: String) {
        append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): self += [UInt8(ascii: "\\"), byte]
            case UInt8(ascii: "\n"): self += "\\n".utf8
            case UInt8(ascii: "\r"): self += "\\r".utf8
            case UInt8(ascii: "\t"): self += "\\t".utf8
            case ..<0x20: self += "\\u00\(byte < 16 ? "0" : "")\(String(byte, radix: 16))".utf8
            default: append(byte)
            }
        }
        append(UInt8(ascii: "\""))
    }
}

extension [UInt8] {
    /// Appends text with HTML escapes. The result is also valid in attribute values in double quotes.
    package mutating func appendHTML(_ text: String) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "&"): self += "&amp;".utf8
            case UInt8(ascii: "<"): self += "&lt;".utf8
            case UInt8(ascii: ">"): self += "&gt;".utf8
            case UInt8(ascii: "\""): self += "&quot;".utf8
            default: append(byte)
            }
        }
    }
}
