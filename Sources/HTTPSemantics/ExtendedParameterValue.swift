/// `ext-value` of RFC 8187 §3.2: a parameter's value with its character encoding, percent-encoded.
enum ExtendedParameterValue {
    /// The decoded text; nil when it is malformed, not valid in its encoding, or in another one than UTF-8 and
    /// ISO-8859-1.
    static func decode(_ value: String) -> String? {
        let parts = value.utf8.split(separator: 0x27, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1].allSatisfy({ $0.isLetter || $0.isDigit || $0 == 0x2D }) else { return nil }
        var bytes: [UInt8] = []
        var remaining = parts[2]
        while let byte = remaining.popFirst() {
            if byte == 0x25 {
                guard let high = remaining.popFirst()?.hexDigitValue, let low = remaining.popFirst()?.hexDigitValue
                else {
                    return nil
                }
                bytes.append(high << 4 | low)
            } else {
                guard byte.isAttributeCharacter else { return nil }
                bytes.append(byte)
            }
        }
        switch String(parts[0])?.asciiLowercased {
        case "utf-8":
            return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1":
            var scalars = String.UnicodeScalarView()
            scalars.append(contentsOf: bytes.map { Unicode.Scalar($0) })
            return String(scalars)
        default:
            return nil
        }
    }

    /// The text in UTF-8, without a language.
    static func encode(_ text: String) -> String {
        "UTF-8''" + text.utf8.percentEncoded(allowing: \.isAttributeCharacter)
    }
}
