/// Byte-wise operations on strings. Field syntax is defined on octets, so grapheme clusters (CR LF is one) and
/// canonical equivalence must not matter.
extension String {
    /// The string with ASCII letters in lower case; other characters stay untouched.
    var asciiLowercased: String {
        guard utf8.contains(where: { (0x41...0x5A).contains($0) }) else { return self }
        return String(decoding: utf8.map(\.asciiLowercased), as: UTF8.self)
    }

    /// Whether both strings are equal but for the case of ASCII letters.
    func equalsIgnoringASCIICase(_ other: String) -> Bool {
        utf8.count == other.utf8.count && zip(utf8, other.utf8).allSatisfy { $0.asciiLowercased == $1.asciiLowercased }
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
    var isToken: Bool { !utf8.isEmpty && utf8.allSatisfy(\.isTokenCharacter) }

    /// The string as `quoted-string` (RFC 9110 §5.6.4). The caller must ensure that it is a valid field value.
    var quoted: String {
        var bytes: [UInt8] = [0x22]
        for byte in utf8 {
            if byte == 0x22 || byte == 0x5C { bytes.append(0x5C) }
            bytes.append(byte)
        }
        bytes.append(0x22)
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
                bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 0x0F)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
