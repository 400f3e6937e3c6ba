/// A media type with its parameters (RFC 9110 section 8.3.1).
package struct MediaType: Sendable, Hashable {
    package struct Parameter: Sendable, Hashable {
        /// The name in lower case.
        package let name: String
        /// The value without quotes; its case is kept.
        package let value: String

        package init(name: String, value: String) {
            self.name = name.asciiLowercased
            self.value = value
        }
    }

    /// The type in lower case.
    package let type: String
    /// The subtype in lower case.
    package let subtype: String
    /// The parameters in the given order. If a name occurs twice, the first parameter is used.
    package let parameters: [Parameter]

    /// Creates a media type. Returns `nil` if the type, the subtype or the name of a parameter is not a token, or if
    /// the value of a parameter is not a valid field value.
    package init?(type: String, subtype: String, parameters: [Parameter] = []) {
        guard type.isToken, subtype.isToken,
            parameters.allSatisfy({ $0.name.isToken && Fields.isValidValue($0.value) })
        else { return nil }
        self.type = type.asciiLowercased
        self.subtype = subtype.asciiLowercased
        self.parameters = parameters
    }

    /// Parses the value of one Content-Type line. Returns `nil` if it is malformed or a list.
    package init?(parsing value: String) {
        var scanner = FieldValueScanner(value.trimmingOptionalWhitespace)
        guard let type = scanner.token(), scanner.consume("/"), let subtype = scanner.token(),
            let parameters = scanner.parameters(), scanner.isAtEnd
        else { return nil }
        self.init(
            type: type, subtype: subtype, parameters: parameters.map { Parameter(name: $0.name, value: $0.value) })
    }

    /// `type/subtype` in lower case, without parameters.
    package var essence: String { "\(type)/\(subtype)" }

    /// The value of the first parameter with this name; `nil` if there is none. The case of the name is ignored.
    package func parameter(_ name: String) -> String? {
        parameters.first { $0.name.equalsIgnoringASCIICase(name) }?.value
    }

    /// Returns whether ``essence`` equals this `type/subtype`. The case of letters and all parameters are ignored.
    package func matches(_ essence: String) -> Bool {
        self.essence.equalsIgnoringASCIICase(essence)
    }

    /// The value of Content-Type. Parameter values that are not tokens are quoted.
    package var serialized: String {
        parameters.reduce(essence) { result, parameter in
            "\(result); \(parameter.name)=\(parameter.value.isToken ? parameter.value : parameter.value.quoted)"
        }
    }
}

/// The media ranges of an Accept field with their weights (RFC 9110 section 12.5.1).
package struct AcceptField: Sendable, Hashable {
    private struct MediaRange: Sendable, Hashable {
        /// `type/subtype` in lower case; a wildcard is "*".
        let essence: String
        /// The weight in thousandths.
        let weight: Int
    }

    private let ranges: [MediaRange]

    /// Parses the values of all lines of the field. Returns `nil` if they are malformed; an absent or empty field has
    /// no ranges.
    package init?(fieldLines: [String]) {
        var scanner = FieldValueScanner(fieldLines.joined(separator: ","))
        guard let ranges = scanner.list(of: { AcceptField.mediaRange(&$0) }) else { return nil }
        self.ranges = ranges
    }

    /// Returns the weight, in thousandths, of a media type that a range names without wildcards; `nil` if there is no
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

    /// `qvalue` of RFC 9110 section 12.4.2: 0 to 1 with at most three digits after the point.
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
