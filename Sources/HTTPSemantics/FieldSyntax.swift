/// The character classes of RFC 9110 §5.6 and RFC 3986, on single bytes.
extension UInt8 {
    var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }

    var isLetter: Bool { isUppercaseLetter || UInt8(ascii: "a")...UInt8(ascii: "z") ~= self }

    fileprivate var isUppercaseLetter: Bool { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self }

    /// `tchar` of RFC 9110 §5.6.2.
    var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "!"), UInt8(ascii: "#")...UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^")...UInt8(ascii: "`"), UInt8(ascii: "|"),
            UInt8(ascii: "~"):
            true
        default: isDigit || isLetter
        }
    }

    /// SP or HTAB, the two bytes of `OWS`.
    var isOptionalWhitespace: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }

    /// Whether the byte is allowed in a field value (RFC 9110 §5.5): HTAB, SP, VCHAR and obs-text.
    var isFieldValueCharacter: Bool { self == UInt8(ascii: "\t") || (self >= 0x20 && self != 0x7F) }

    /// `unreserved` of RFC 3986 §2.3.
    package var isUnreserved: Bool {
        switch self {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: isLetter || isDigit
        }
    }

    /// `sub-delims` of RFC 3986 §2.2.
    var isSubDelimiter: Bool {
        switch self {
        case UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "&")...UInt8(ascii: ","), UInt8(ascii: ";"),
            UInt8(ascii: "="):
            true
        default: false
        }
    }

    /// `attr-char` of RFC 8187 §3.2.1.
    var isAttributeCharacter: Bool { isTokenCharacter && !"*'%".utf8.contains(self) }

    /// The value of the byte as a hexadecimal digit in upper or lower case; nil if it is not a digit.
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

    /// The string without SP and HTAB at both ends (`OWS`, RFC 9110 §5.6.3).
    var trimmingOptionalWhitespace: String {
        let bytes = utf8
        guard let first = bytes.firstIndex(where: { !$0.isOptionalWhitespace }),
            let last = bytes.lastIndex(where: { !$0.isOptionalWhitespace })
        else { return "" }
        if first == bytes.startIndex && bytes.index(after: last) == bytes.endIndex { return self }
        return String(self[first...last])
    }

    /// Whether the string is a non-empty `token` (RFC 9110 §5.6.2).
    var isToken: Bool { withBytes { !$0.isEmpty && $0.allSatisfy(\.isTokenCharacter) } }

    /// The string as `quoted-string` (RFC 9110 §5.6.4). The caller must ensure that the string is a valid
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
    /// Percent-encodes every byte for which `isAllowed` is false, with upper-case digits (RFC 3986 §2.1).
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
}
