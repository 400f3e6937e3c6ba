/// The parameters of an Item or an Inner List: keys with values, in order (RFC 9651 §3.1.2).
///
/// Setting a key that is present replaces its value and keeps its place. Two values are equal when keys, values and
/// order are.
public struct Parameters: Hashable, Sendable {
    private var storage = KeyedEntries<BareItem>()

    public init() {}

    /// The value of `key`, or nil; setting nil removes the parameter.
    public subscript(key: String) -> BareItem? {
        get { storage[key] }
        set { storage[key] = newValue }
    }

    public var count: Int { storage.entries.count }

    public var isEmpty: Bool { storage.entries.isEmpty }

    /// The keys, in order.
    public var keys: [String] { storage.entries.map(\.key) }
}

extension Parameters: Sequence {
    public typealias Element = (key: String, value: BareItem)

    public struct Iterator: IteratorProtocol {
        var entries: IndexingIterator<[KeyedEntries<BareItem>.Entry]>

        public mutating func next() -> Element? {
            entries.next().map { (key: $0.key, value: $0.value) }
        }
    }

    public func makeIterator() -> Iterator {
        Iterator(entries: storage.entries.makeIterator())
    }

    public var underestimatedCount: Int { count }
}

extension Parameters: ExpressibleByDictionaryLiteral {
    /// Of a key given twice, the last value stays, in the first one's place.
    public init(dictionaryLiteral elements: (String, BareItem)...) {
        for (key, value) in elements {
            self[key] = value
        }
    }
}
