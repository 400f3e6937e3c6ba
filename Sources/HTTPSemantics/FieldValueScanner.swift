/// A cursor over the bytes of one field value, and the grammar rules of RFC 9110 §5.6 that several fields use.
///
/// A method that returns nil may have moved the cursor, so the caller must reject the entire value.
struct FieldValueScanner {
    private let bytes: [UInt8]
    private(set) var position = 0

    init(_ value: String) {
        bytes = Array(value.utf8)
    }

    var isAtEnd: Bool { position == bytes.count }

    var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func consume(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    /// Consumes an ASCII character; returns false and consumes nothing if it is not next.
    mutating func consume(_ character: Unicode.Scalar) -> Bool { consume(UInt8(ascii: character)) }

    /// Consumes `literal`; returns false and consumes nothing if it is not next.
    mutating func consume(literal: String) -> Bool {
        guard bytes[position...].starts(with: literal.utf8) else { return false }
        position += literal.utf8.count
        return true
    }

    mutating func skipOptionalWhitespace() {
        while let byte = next, byte.isOptionalWhitespace { position += 1 }
    }

    /// The longest, possibly empty, run of bytes that satisfy `condition`.
    mutating func run(where condition: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while let byte = next, condition(byte) { position += 1 }
        return bytes[start..<position]
    }

    mutating func token() -> String? {
        let characters = run(where: \.isTokenCharacter)
        return characters.isEmpty ? nil : String(decoding: characters, as: UTF8.self)
    }

    /// One or more digits without leading zeros ("0" for zero), so that equal numbers have equal digits.
    mutating func digits() -> ArraySlice<UInt8>? {
        let characters = run(where: \.isDigit)
        guard !characters.isEmpty else { return nil }
        return characters.firstIndex { $0 != UInt8(ascii: "0") }.map { characters[$0...] } ?? characters.suffix(1)
    }

    /// The content of a `quoted-string`, without the backslashes of quoted pairs (RFC 9110 §5.6.4).
    mutating func quotedString() -> String? {
        guard consume("\"") else { return nil }
        var content: [UInt8] = []
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = next, escaped.isFieldValueCharacter else { return nil }
                position += 1
                content.append(escaped)
            default:
                guard byte.isFieldValueCharacter else { return nil }
                content.append(byte)
            }
        }
        return nil
    }

    /// `token = ( token / quoted-string )`; the name in lower case.
    ///
    /// - Parameter allowsWhitespace: Whether OWS may surround the equals sign, as older grammars allow.
    mutating func parameter(allowsWhitespace: Bool = false) -> (name: String, value: String)? {
        guard let name = token() else { return nil }
        if allowsWhitespace { skipOptionalWhitespace() }
        guard consume("=") else { return nil }
        if allowsWhitespace { skipOptionalWhitespace() }
        guard let value = next == UInt8(ascii: "\"") ? quotedString() : token() else { return nil }
        return (name.asciiLowercased, value)
    }

    /// `*( OWS ";" OWS [ parameter ] )` (RFC 9110 §5.6.6). The cursor stops at the first character after it.
    mutating func parameters(allowsWhitespace: Bool = false) -> [(name: String, value: String)]? {
        var result: [(name: String, value: String)] = []
        while true {
            let mark = position
            skipOptionalWhitespace()
            guard consume(";") else {
                position = mark
                return result
            }
            skipOptionalWhitespace()
            guard let byte = next, byte != UInt8(ascii: ";"), byte != UInt8(ascii: ",") else { continue }
            guard let parameter = parameter(allowsWhitespace: allowsWhitespace) else { return nil }
            result.append(parameter)
        }
    }

    /// The remaining value as a comma-separated list (RFC 9110 §5.6.1); nil unless it is valid to its end.
    ///
    /// - Parameter allowsEmptyElements: Whether empty elements are skipped, as §5.6.1.2 requires of recipients.
    ///   Otherwise an empty element makes the list malformed, as fields about framing require.
    mutating func list<Element>(
        allowsEmptyElements: Bool = true, of element: (inout FieldValueScanner) -> Element?
    ) -> [Element]? {
        var result: [Element] = []
        while true {
            skipOptionalWhitespace()
            if isAtEnd || next == UInt8(ascii: ",") {
                guard allowsEmptyElements else { return nil }
            } else {
                guard let element = element(&self) else { return nil }
                result.append(element)
                skipOptionalWhitespace()
            }
            if isAtEnd { return result }
            guard consume(",") else { return nil }
        }
    }
}
