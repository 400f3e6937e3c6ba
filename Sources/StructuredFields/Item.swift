/// A value with its parameters (RFC 9651 §3.3).
package struct Item: Hashable, Sendable {
    package var value: BareItem
    package var parameters: Parameters

    package init(_ value: BareItem, parameters: Parameters = [:]) {
        self.value = value
        self.parameters = parameters
    }
}

extension Item: FieldValue {
    /// Parses a field whose type is Item (RFC 9651 §4.2.3). An empty value fails.
    package init(parsing bytes: some Collection<UInt8>) throws(ParseFailure) {
        var parser = try Parser(bytes)
        self = try parser.item()
        try parser.finish()
    }

    package func serialized() throws(SerializationFailure) -> String {
        var serializer = Serializer()
        try serializer.append(self)
        return serializer.text
    }
}
