/// A Dictionary: keys with members, in order (RFC 9651 §3.2).
///
/// Setting a key that is present replaces its member and keeps its position. Two values are equal if their keys,
/// members and order are equal.
package struct OrderedDictionary: Hashable, Sendable {
    private var storage = KeyedEntries<Member>()

    package init() {}

    /// The member of `key`; nil if there is none. Setting nil removes it.
    package subscript(key: String) -> Member? {
        get { storage[key] }
        set { storage[key] = newValue }
    }

    package var count: Int { storage.entries.count }

    package var isEmpty: Bool { storage.entries.isEmpty }

    /// The keys, in order.
    package var keys: [String] { storage.entries.map(\.key) }
}

extension OrderedDictionary: Sequence {
    package typealias Element = (key: String, member: Member)

    package struct Iterator: IteratorProtocol {
        var entries: IndexingIterator<[KeyedEntries<Member>.Entry]>

        package mutating func next() -> Element? {
            entries.next().map { (key: $0.key, member: $0.value) }
        }
    }

    package func makeIterator() -> Iterator {
        Iterator(entries: storage.entries.makeIterator())
    }

    package var underestimatedCount: Int { count }
}

extension OrderedDictionary: ExpressibleByDictionaryLiteral {
    /// If a key is given twice, the last member is kept, at the position of the first.
    package init(dictionaryLiteral elements: (String, Member)...) {
        for (key, member) in elements {
            self[key] = member
        }
    }
}

extension OrderedDictionary: FieldValue {
    /// Parses a field whose type is Dictionary (RFC 9651 §4.2.2). An empty value is an empty dictionary.
    ///
    /// If a key appears twice, the last member is kept, at the position of the first.
    package init(parsing bytes: some Collection<UInt8>) throws(ParseFailure) {
        var parser = try Parser(bytes)
        self = try parser.dictionary()
        try parser.finish()
    }

    /// The canonical value. An empty dictionary has an empty value; the field is then not sent (RFC 9651 §4.1).
    package func serialized() throws(SerializationFailure) -> String {
        var serializer = Serializer()
        try serializer.append(self)
        return serializer.text
    }
}
