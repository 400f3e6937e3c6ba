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
    /// Parses a field whose type is Item (RFC 9651 §4.2.3). Throws an error if the value is empty.
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

/// The value of an Item or of a parameter (RFC 9651 §3.3).
///
/// A case can contain a value that the field format cannot express, such as an Integer of 16 digits; serializing it
/// throws ``SerializationFailure``. Every value that the parser returns can be serialized.
package enum BareItem: Hashable, Sendable {
    /// An Integer of at most 15 digits.
    case integer(Int)
    case decimal(Decimal)
    /// Printable ASCII, without the quotes and escapes of the field value.
    case string(String)
    case token(String)
    /// The decoded bytes.
    case byteSequence([UInt8])
    case boolean(Bool)
    /// Seconds since 1970-01-01T00:00:00Z without leap seconds; negative for earlier times.
    case date(Int)
    /// Any Unicode text, with its escapes decoded.
    case displayString(String)

    /// The largest magnitude of an Integer and of a Date (§3.3.1, §3.3.7).
    static let maximumInteger = 999_999_999_999_999
}

/// The parameters of an Item or an Inner List: keys with values, in order (RFC 9651 §3.1.2).
///
/// Setting a key that is present replaces its value and keeps its position. Two values are equal if their keys, values
/// and order are equal.
package struct Parameters: Hashable, Sendable {
    private var storage = KeyedEntries<BareItem>()

    package init() {}

    /// The value of `key`; nil if there is none. Setting nil removes the parameter.
    package subscript(key: String) -> BareItem? {
        get { storage[key] }
        set { storage[key] = newValue }
    }

    package var count: Int { storage.entries.count }

    package var isEmpty: Bool { storage.entries.isEmpty }

    /// The keys, in order.
    package var keys: [String] { storage.entries.map(\.key) }
}

extension Parameters: Sequence {
    package typealias Element = (key: String, value: BareItem)

    package struct Iterator: IteratorProtocol {
        var entries: IndexingIterator<[KeyedEntries<BareItem>.Entry]>

        package mutating func next() -> Element? {
            entries.next().map { (key: $0.key, value: $0.value) }
        }
    }

    package func makeIterator() -> Iterator {
        Iterator(entries: storage.entries.makeIterator())
    }

    package var underestimatedCount: Int { count }
}

extension Parameters: ExpressibleByDictionaryLiteral {
    /// If a key is given twice, the last value is kept, at the position of the first.
    package init(dictionaryLiteral elements: (String, BareItem)...) {
        for (key, value) in elements {
            self[key] = value
        }
    }
}
