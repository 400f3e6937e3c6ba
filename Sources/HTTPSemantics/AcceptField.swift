/// The media ranges of an Accept field with their weights (RFC 9110 §12.5.1).
package struct AcceptField: Sendable, Hashable {
    private struct MediaRange: Sendable, Hashable {
        /// `type/subtype` in lower case; a wildcard is "*".
        let essence: String
        /// The weight in thousandths.
        let weight: Int
    }

    private let ranges: [MediaRange]

    /// Parses the values of all lines of the field. Returns nil if they are malformed; an absent or empty field has no
    /// ranges.
    package init?(fieldLines: [String]) {
        var scanner = FieldValueScanner(fieldLines.joined(separator: ","))
        guard let ranges = scanner.list(of: { AcceptField.mediaRange(&$0) }) else { return nil }
        self.ranges = ranges
    }

    /// Returns the weight, in thousandths, of a media type that a range names without wildcards; nil if there is no
    /// such range. Parameters are ignored. If several ranges name the type, the result is the highest weight.
    package func weight(ofListedType essence: String) -> Int? {
        ranges.filter { $0.essence.equalsIgnoringASCIICase(essence) }.map(\.weight).max()
    }

    private static func mediaRange(_ scanner: inout FieldValueScanner) -> MediaRange? {
        guard let type = scanner.token(), scanner.consume("/"), let subtype = scanner.token(),
            type != "*" || subtype == "*", let parameters = scanner.parameters()
        else { return nil }
        var weight = 1000
        if let text = parameters.first(where: { $0.name == "q" })?.value {
            guard let value = thousandths(text) else { return nil }
            weight = value
        }
        return MediaRange(essence: "\(type)/\(subtype)".asciiLowercased, weight: weight)
    }

    /// `qvalue` of RFC 9110 §12.4.2: 0 to 1 with at most three digits after the point.
    private static func thousandths(_ text: String) -> Int? {
        let bytes = Array(text.utf8)
        guard let first = bytes.first, first == UInt8(ascii: "0") || first == UInt8(ascii: "1") else { return nil }
        var digits = bytes.dropFirst()
        if let point = digits.popFirst() {
            guard point == UInt8(ascii: "."), digits.count <= 3, digits.allSatisfy(\.isDigit) else { return nil }
        }
        var value = Int(first - UInt8(ascii: "0"))
        for index in 0..<3 {
            value = 10 * value + (index < digits.count ? Int(digits[digits.startIndex + index] - UInt8(ascii: "0")) : 0)
        }
        return value <= 1000 ? value : nil
    }
}
