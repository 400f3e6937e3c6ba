import Foundation
import SystemCalls

/// A JSON object in one line (RFC 8259), its members in the order in which they were given.
struct JSONLine: Sendable {
    enum Value: Sendable, Hashable {
        case text(String)
        case number(Int64)
        /// A number of seconds.
        case seconds(Double)
        case truth(Bool)
        case null
    }

    private(set) var members: [(name: String, value: Value)] = []

    init(_ members: [(String, Value)]) { self.members = members.map { ($0.0, $0.1) } }

    mutating func append(_ name: String, _ value: Value) { members.append((name, value)) }

    mutating func append(_ name: String, _ value: String?) { append(name, value.map { .text($0) } ?? .null) }

    /// Appends a path. If it is not UTF-8, a second member follows, whose name ends in `Bytes` and whose value is the
    /// bytes in base64 (RFC 4648).
    mutating func append(_ name: String, path: FilePath?) {
        append(name, path?.repairedText)
        if let path, path.text == nil { append(name + "Bytes", Data(path.bytes).base64EncodedString()) }
    }

    mutating func append(_ name: String, _ value: Int64?) { append(name, value.map { .number($0) } ?? .null) }

    var text: String {
        "{" + members.map { "\(Self.quoted($0.name)):\(Self.text($0.value))" }.joined(separator: ",") + "}"
    }

    private static func text(_ value: Value) -> String {
        switch value {
        case .text(let text): quoted(text)
        case .number(let number): String(number)
        case .seconds(let seconds): seconds.isFinite ? String((seconds * 1000).rounded() / 1000) : "null"
        case .truth(let truth): truth ? "true" : "false"
        case .null: "null"
        }
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
