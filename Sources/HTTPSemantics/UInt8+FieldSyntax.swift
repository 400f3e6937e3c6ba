/// The character classes of RFC 9110 §5.6 and RFC 3986, on single bytes.
extension UInt8 {
    var isDigit: Bool { (0x30...0x39).contains(self) }

    var isLetter: Bool { (0x41...0x5A).contains(self) || (0x61...0x7A).contains(self) }

    /// `tchar` of RFC 9110 §5.6.2.
    var isTokenCharacter: Bool {
        switch self {
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
        default: isDigit || isLetter
        }
    }

    /// SP or HTAB, the two bytes of `OWS`.
    var isOptionalWhitespace: Bool { self == 0x20 || self == 0x09 }

    /// Whether the byte is allowed in a field value (RFC 9110 §5.5): HTAB, SP, VCHAR and obs-text.
    var isFieldValueCharacter: Bool { self == 0x09 || (self >= 0x20 && self != 0x7F) }

    /// `unreserved` of RFC 3986 §2.3.
    package var isUnreserved: Bool {
        isLetter || isDigit || self == 0x2D || self == 0x2E || self == 0x5F || self == 0x7E
    }

    /// `sub-delims` of RFC 3986 §2.2.
    var isSubDelimiter: Bool {
        switch self {
        case 0x21, 0x24, 0x26...0x2C, 0x3B, 0x3D: true
        default: false
        }
    }

    /// `attr-char` of RFC 8187 §3.2.1.
    var isAttributeCharacter: Bool { isTokenCharacter && self != 0x2A && self != 0x27 && self != 0x25 }

    /// The value of a hexadecimal digit of either case.
    var hexDigitValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x41 + 10
        case 0x61...0x66: self - 0x61 + 10
        default: nil
        }
    }

    /// ASCII letters in lower case; every other byte as it is.
    var asciiLowercased: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}
