/// Members in order, separated by commas (RFC 9651 §3.1).
package struct List: Hashable, Sendable {
    package var members: [Member]

    package init(_ members: [Member] = []) {
        self.members = members
    }
}

extension List: FieldValue {
    /// Parses a field whose type is List (RFC 9651 §4.2.1). An empty value is an empty list.
    package init(parsing bytes: some Collection<UInt8>) throws(ParseFailure) {
        var parser = try Parser(bytes)
        self = try parser.list()
        try parser.finish()
    }

    /// The canonical value. An empty list has an empty value; the field is then not sent (RFC 9651 §4.1).
    package func serialized() throws(SerializationFailure) -> String {
        var serializer = Serializer()
        try serializer.append(self)
        return serializer.text
    }
}

/// A member of a List or the value of a Dictionary's member (RFC 9651 §3.1, §3.2).
package enum Member: Hashable, Sendable {
    case item(Item)
    case innerList(InnerList)
}

/// A list of Items in parentheses, which can be empty, and the parameters of the list (RFC 9651 §3.1.1).
package struct InnerList: Hashable, Sendable {
    package var items: [Item]
    package var parameters: Parameters

    package init(_ items: [Item] = [], parameters: Parameters = [:]) {
        self.items = items
        self.parameters = parameters
    }
}
