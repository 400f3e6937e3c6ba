import StructuredFields

/// The character classes of RFC 9110 section 5.6 and RFC 3986, on single bytes.
extension UInt8 {
    var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }

    var isLetter: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self | 0x20 }

    fileprivate var isUppercaseLetter: Bool { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self }

    /// `tchar` of RFC 9110 section 5.6.2.
    var isTokenCharacter: Bool {
        // Most characters of tokens are letters.
        if isLetter { return true }
        switch self {
        case UInt8(ascii: "!"), UInt8(ascii: "#")...UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^")...UInt8(ascii: "`"), UInt8(ascii: "|"),
            UInt8(ascii: "~"):
            return true
        default: return isDigit
        }
    }

    /// SP or HTAB, the two bytes of `OWS`.
    var isOptionalWhitespace: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }

    /// Whether the byte is allowed in a field value (RFC 9110 section 5.5): HTAB, SP, VCHAR and obs-text.
    var isFieldValueCharacter: Bool { self == UInt8(ascii: "\t") || (self >= 0x20 && self != 0x7F) }

    /// `unreserved` of RFC 3986 section 2.3.
    package var isUnreserved: Bool {
        switch self {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: isLetter || isDigit
        }
    }

    /// `sub-delims` of RFC 3986 section 2.2.
    var isSubDelimiter: Bool {
        switch self {
        case UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "&")...UInt8(ascii: ","), UInt8(ascii: ";"),
            UInt8(ascii: "="):
            true
        default: false
        }
    }

    /// `attr-char` of RFC 8187 section 3.2.1.
    var isAttributeCharacter: Bool { isTokenCharacter && !"*'%".utf8.contains(self) }

    /// The value of the byte as a hexadecimal digit in upper or lower case; `nil` if it is not a digit.
    var hexDigitValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    /// The byte in lower case if it is an ASCII letter; otherwise the same byte.
    var asciiLowercased: UInt8 { isUppercaseLetter ? self | 0x20 : self }
}

/// Byte-wise operations on strings. The syntax of fields is defined on bytes. Swift's own operations work on grapheme
/// clusters, such as CR LF, and compare strings by canonical equivalence, so they would give other results.
extension String {
    /// Calls `body` with the bytes of the string, which are faster to read than the elements of `utf8`.
    func withBytes<Value>(_ body: (UnsafeBufferPointer<UInt8>) -> Value) -> Value {
        if let value = utf8.withContiguousStorageIfAvailable(body) { return value }
        // Only a string that Foundation has bridged has no contiguous bytes.
        return Array(utf8).withUnsafeBufferPointer(body)
    }

    /// The string with ASCII letters in lower case; other characters stay untouched.
    var asciiLowercased: String {
        guard utf8.contains(where: \.isUppercaseLetter) else { return self }
        return String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self)
    }

    /// Whether both strings are equal if the case of ASCII letters is ignored.
    package func equalsIgnoringASCIICase(_ other: String) -> Bool {
        utf8.count == other.utf8.count && hasPrefixIgnoringASCIICase(other)
    }

    /// Whether the string begins with `prefix` if the case of ASCII letters is ignored.
    package func hasPrefixIgnoringASCIICase(_ prefix: String) -> Bool {
        guard utf8.count >= prefix.utf8.count else { return false }
        return withBytes { bytes in
            prefix.withBytes { prefix in
                prefix.indices.allSatisfy { bytes[$0].asciiLowercased == prefix[$0].asciiLowercased }
            }
        }
    }

    /// Whether both strings consist of the same bytes.
    func equalsBytewise(_ other: String) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }

    /// The string without SP and HTAB at both ends (`OWS`, RFC 9110 section 5.6.3).
    var trimmingOptionalWhitespace: String {
        let bytes = utf8
        guard let first = bytes.firstIndex(where: { !$0.isOptionalWhitespace }),
            let last = bytes.lastIndex(where: { !$0.isOptionalWhitespace })
        else { return "" }
        if first == bytes.startIndex && bytes.index(after: last) == bytes.endIndex { return self }
        return String(Substring(bytes[first...last]))
    }

    /// Whether the string is a non-empty `token` (RFC 9110 section 5.6.2).
    var isToken: Bool { withBytes { !$0.isEmpty && $0.allSatisfy(\.isTokenCharacter) } }

    /// The string as `quoted-string` (RFC 9110 section 5.6.4). The caller must ensure that the string is a valid
    /// field value.
    var quoted: String {
        var bytes = [UInt8(ascii: "\"")]
        for byte in utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        bytes.append(UInt8(ascii: "\""))
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension Sequence<UInt8> {
    /// Percent-encodes every byte for which `isAllowed` is false, with upper-case digits (RFC 3986 section 2.1).
    package func percentEncoded(allowing isAllowed: (UInt8) -> Bool) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(underestimatedCount)
        for byte in self {
            if isAllowed(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0x0F)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The bytes with `%XX` replaced; `nil` if a percent sign is not followed by two hexadecimal digits.
    package var percentDecoded: [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(underestimatedCount)
        var iterator = makeIterator()
        while let byte = iterator.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = iterator.next()?.hexDigitValue, let low = iterator.next()?.hexDigitValue else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}

extension [UInt8] {
    /// The base64 encoding (RFC 4648 section 4).
    package var base64: String {
        var text: [UInt8] = []
        Base64.encode(self, into: &text)
        return String(decoding: text, as: UTF8.self)
    }
}

/// A cursor over the bytes of one field value, and the grammar rules of RFC 9110 section 5.6 that several fields use.
///
/// A method that returns `nil` may have moved the cursor, so the caller must reject the entire value.
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

    /// The content of a `quoted-string`, without the backslashes of quoted pairs (RFC 9110 section 5.6.4).
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
    /// - Parameter isWhitespaceAllowed: Whether OWS may surround the equals sign, as older grammars allow.
    mutating func parameter(isWhitespaceAllowed: Bool = false) -> (name: String, value: String)? {
        guard let name = token() else { return nil }
        if isWhitespaceAllowed { skipOptionalWhitespace() }
        guard consume("=") else { return nil }
        if isWhitespaceAllowed { skipOptionalWhitespace() }
        guard let value = next == UInt8(ascii: "\"") ? quotedString() : token() else { return nil }
        return (name.asciiLowercased, value)
    }

    /// `*( OWS ";" OWS [ parameter ] )` (RFC 9110 section 5.6.6). The cursor stops at the first character after it.
    mutating func parameters(isWhitespaceAllowed: Bool = false) -> [(name: String, value: String)]? {
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
            guard let parameter = parameter(isWhitespaceAllowed: isWhitespaceAllowed) else { return nil }
            result.append(parameter)
        }
    }

    /// The remaining value as a comma-separated list (RFC 9110 section 5.6.1); `nil` unless it is valid to its end.
    ///
    /// - Parameter isEmptyElementAllowed: Whether empty elements are skipped, as RFC 9110 section 5.6.1.2 requires of
    ///   recipients. Otherwise an empty element makes the list malformed, as fields about framing require.
    mutating func list<Element>(
        isEmptyElementAllowed: Bool = true, of element: (inout FieldValueScanner) -> Element?
    ) -> [Element]? {
        var result: [Element] = []
        while true {
            skipOptionalWhitespace()
            if isAtEnd || next == UInt8(ascii: ",") {
                guard isEmptyElementAllowed else { return nil }
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
