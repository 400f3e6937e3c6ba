/// A media type with its parameters (RFC 9110 §8.3.1).
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

    /// Creates a media type. Returns nil if the type, the subtype or the name of a parameter is not a token, or if the
    /// value of a parameter is not a valid field value.
    package init?(type: String, subtype: String, parameters: [Parameter] = []) {
        guard type.isToken, subtype.isToken,
            parameters.allSatisfy({ $0.name.isToken && Fields.isValidValue($0.value) })
        else { return nil }
        self.type = type.asciiLowercased
        self.subtype = subtype.asciiLowercased
        self.parameters = parameters
    }

    /// Parses the value of one Content-Type line. Returns nil if it is malformed or a list.
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

    /// The value of the first parameter with this name; nil if there is none. The case of the name is ignored.
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
