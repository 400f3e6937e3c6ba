/// A value with its parameters (RFC 9651 §3.3).
public struct Item: Hashable, Sendable {
    public var value: BareItem
    public var parameters: Parameters

    public init(_ value: BareItem, parameters: Parameters = [:]) {
        self.value = value
        self.parameters = parameters
    }
}

extension Item: FieldValue {
    /// Parses a field whose type is Item (RFC 9651 §4.2.3). An empty value fails.
    public init(parsing bytes: some Collection<UInt8>) throws(ParseFailure) {
        var parser = try Parser(bytes)
        self = try parser.item()
        try parser.finish()
    }

    public func serialized() throws(SerializationFailure) -> String {
        var serializer = Serializer()
        try serializer.append(self)
        return serializer.text
    }
}
