/// A Content-Disposition value (RFC 6266).
///
/// The file name is unchecked input; ``SafeFileName`` makes it safe for a file system.
package struct ContentDisposition: Sendable, Hashable {
    /// `attachment`, `inline` or another type, in lower case.
    package let type: String
    /// The decoded value of `filename*` if that is present and valid, otherwise the value of `filename`.
    package let filename: String?

    /// A type that is not a token becomes `attachment`, because recipients handle unknown types as attachments (RFC
    /// 6266 section 4.2).
    package init(type: String, filename: String? = nil) {
        self.type = type.isToken ? type.asciiLowercased : "attachment"
        self.filename = filename
    }

    /// Parses a field value. Returns `nil` if it is malformed or names a parameter twice (RFC 6266 section 4.1).
    ///
    /// `filename*` is decoded from UTF-8 or ISO-8859-1 (RFC 8187); when it is malformed it is ignored (RFC 6266 section
    /// 4.3). The value of `filename` is decoded as ISO-8859-1 unless it is UTF-8, as browsers do. White space around "="
    /// is accepted, as the grammar of RFC 2616 allowed it.
    package init?(parsing value: String) {
        var scanner = FieldValueScanner(value.trimmingOptionalWhitespace)
        guard let type = scanner.token(), let parameters = scanner.parameters(isWhitespaceAllowed: true),
            scanner.isAtEnd,
            Set(parameters.map(\.name)).count == parameters.count
        else { return nil }
        let extended = parameters.first { $0.name == "filename*" }.flatMap { ExtendedParameterValue.decode($0.value) }
        let plain = parameters.first { $0.name == "filename" }?.value.fieldTextInLatin1
        self.init(type: type, filename: extended ?? plain)
    }

    /// The field value. The name is the value of `filename`. If `filename` cannot express it, its value is an ASCII
    /// approximation for old recipients, and `filename*` with the exact name follows.
    ///
    /// Any name is allowed. It cannot end the field or add a parameter, because control characters, quotes and
    /// backslashes are replaced or percent-encoded.
    package var serialized: String {
        guard let filename else { return type }
        let approximation = ContentDisposition.asciiApproximation(of: filename)
        let plain = "\(type); filename=\(approximation.quoted)"
        if approximation.equalsBytewise(filename) { return plain }
        return "\(plain); filename*=\(ExtendedParameterValue.encode(filename))"
    }

    /// The name with "_" in place of characters that recipients interpret differently: non-ASCII and control
    /// characters, quotes and backslashes, and "%", which some recipients decode (RFC 6266 appendix D).
    private static func asciiApproximation(of name: String) -> String {
        var approximation = String.UnicodeScalarView()
        for scalar in name.unicodeScalars {
            let isPlain = (0x20...0x7E).contains(scalar.value) && scalar != "\"" && scalar != "\\" && scalar != "%"
            approximation.append(isPlain ? scalar : "_")
        }
        return String(approximation)
    }
}

/// `ext-value` of RFC 8187 section 3.2: a parameter's value with its character encoding, percent-encoded.
enum ExtendedParameterValue {
    /// The decoded text; `nil` when the value is malformed, is not valid in its encoding, or has an encoding other than
    /// UTF-8 and ISO-8859-1.
    static func decode(_ value: String) -> String? {
        let parts = value.utf8.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1].allSatisfy({ $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "-") }),
            parts[2].allSatisfy({ $0.isAttributeCharacter || $0 == UInt8(ascii: "%") }),
            let bytes = parts[2].percentDecoded
        else { return nil }
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
