extension [UInt8] {
    /// Appends a JSON string (RFC 8259 §7): quote, backslash and the controls below U+0020 escaped, all else as it is.
    package mutating func appendJSON(_ string: String) {
        append(0x22)
        for byte in string.utf8 {
            switch byte {
            case 0x22, 0x5C: self += [0x5C, byte]
            case 0x0A: self += "\\n".utf8
            case 0x0D: self += "\\r".utf8
            case 0x09: self += "\\t".utf8
            case ..<0x20: self += "\\u00\(byte < 16 ? "0" : "")\(String(byte, radix: 16))".utf8
            default: append(byte)
            }
        }
        append(0x22)
    }
}
