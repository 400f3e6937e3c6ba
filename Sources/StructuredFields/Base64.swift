/// The base64 encoding (RFC 4648 section 4).
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Decodes base64; returns `nil` if it is malformed.
    ///
    /// Missing padding and nonzero unused bits in the last character are accepted, as RFC 9651 section 4.2.7
    /// recommends; padding that is present must be complete.
    static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let padding = text.reversed().prefix { $0 == .equals }.count
        let content = text.dropLast(padding)
        guard padding == 0 || (padding <= 2 && text.count.isMultiple(of: 4)), content.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(content.count / 4 * 3 + 2)
        var bits: UInt32 = 0
        var width = 0
        for character in content {
            guard let value = value(of: character) else { return nil }
            bits = bits << 6 | UInt32(value)
            width += 6
            if width >= 8 {
                width -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(width)))
            }
        }
        return bytes
    }

    /// Appends the base64 encoding of `bytes`, with padding, to `output`.
    package static func encode(_ bytes: [UInt8], into output: inout [UInt8]) {
        var remaining = bytes[...]
        while !remaining.isEmpty {
            let group = remaining.prefix(3)
            remaining = remaining.dropFirst(3)
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for index in 0..<4 {
                let value = Int(bits >> UInt32(18 - 6 * index) & 0x3F)
                output.append(index <= group.count ? alphabet[value] : .equals)
            }
        }
    }

    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
