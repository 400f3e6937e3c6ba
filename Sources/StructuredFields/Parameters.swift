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
