/// A JSON value that keeps the text of numbers, because the corpus distinguishes 1 from 1.0.
enum JSONValue: Equatable {
    case null
    case boolean(Bool)
    case number(String)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    struct Malformed: Error {
        var offset: Int
    }

    init(parsing text: [UInt8]) throws {
        var reader = Reader(text: text)
        self = try reader.value()
        reader.skipWhitespace()
        guard reader.position == text.count else { throw Malformed(offset: reader.position) }
    }

    subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    var string: String? {
        if case .string(let value) = self { value } else { nil }
    }

    var array: [JSONValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    var isTrue: Bool { self == .boolean(true) }
}

private struct Reader {
    let text: [UInt8]
    var position = 0

    var current: UInt8? { position < text.count ? text[position] : nil }

    mutating func skipWhitespace() {
        while let byte = current, " \t\r\n".utf8.contains(byte) { position += 1 }
    }

    mutating func skipLiteral(_ literal: StaticString) -> Bool {
        let expected = "\(literal)".utf8
        guard text[position...].starts(with: expected) else { return false }
        position += expected.count
        return true
    }

    mutating func expect(_ literal: StaticString) throws {
        skipWhitespace()
        guard skipLiteral(literal) else { throw JSONValue.Malformed(offset: position) }
    }

    mutating func value() throws -> JSONValue {
        skipWhitespace()
        if skipLiteral("null") { return .null }
        if skipLiteral("true") { return .boolean(true) }
        if skipLiteral("false") { return .boolean(false) }
        switch current {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "["): return .array(try array())
        case UInt8(ascii: "{"): return .object(try object())
        default: return .number(try number())
        }
    }

    mutating func number() throws -> String {
        let start = position
        while let byte = current, "+-.0123456789eE".utf8.contains(byte) { position += 1 }
        guard start < position else { throw JSONValue.Malformed(offset: start) }
        return String(decoding: text[start..<position], as: UTF8.self)
    }

    mutating func array() throws -> [JSONValue] {
        try expect("[")
        skipWhitespace()
        if skipLiteral("]") { return [] }
        var elements: [JSONValue] = []
        repeat {
            elements.append(try value())
            skipWhitespace()
        } while skipLiteral(",")
        try expect("]")
        return elements
    }

    mutating func object() throws -> [String: JSONValue] {
        try expect("{")
        skipWhitespace()
        if skipLiteral("}") { return [:] }
        var members: [String: JSONValue] = [:]
        repeat {
            skipWhitespace()
            let name = try string()
            try expect(":")
            members[name] = try value()
            skipWhitespace()
        } while skipLiteral(",")
        try expect("}")
        return members
    }

    mutating func string() throws -> String {
        try expect("\"")
        var units: [UInt16] = []
        var start = position
        while let byte = current {
            guard byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else {
                position += 1
                continue
            }
            units += String(decoding: text[start..<position], as: UTF8.self).utf16
            position += 1
            if byte == UInt8(ascii: "\"") { return String(decoding: units, as: UTF16.self) }
            units.append(try escape())
            start = position
        }
        throw JSONValue.Malformed(offset: position)
    }

    mutating func escape() throws -> UInt16 {
        guard let byte = current else { throw JSONValue.Malformed(offset: position) }
        position += 1
        switch byte {
        case UInt8(ascii: "b"): return 0x08
        case UInt8(ascii: "f"): return 0x0C
        case UInt8(ascii: "n"): return 0x0A
        case UInt8(ascii: "r"): return 0x0D
        case UInt8(ascii: "t"): return 0x09
        case UInt8(ascii: "u"):
            let digits = String(decoding: text[position...].prefix(4), as: UTF8.self)
            guard digits.utf8.count == 4, let unit = UInt16(digits, radix: 16) else {
                throw JSONValue.Malformed(offset: position)
            }
            position += 4
            return unit
        default: return UInt16(byte)
        }
    }
}
