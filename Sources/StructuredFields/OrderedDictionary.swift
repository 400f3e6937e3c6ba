/// A Dictionary: keys with members, in order (RFC 9651 §3.2).
///
/// Setting a key that is present replaces its member and keeps its position. Two values are equal if their keys,
/// members and order are equal.
package struct OrderedDictionary: Hashable, Sendable {
    private var storage = KeyedEntries<Member>()

    package init() {}

    /// The member of `key`; nil if there is none. Setting nil removes the member.
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

/// Keys with values in the order in which the keys first appeared: the storage of parameters and dictionaries.
///
/// If there are only a few entries, they are searched one by one. More entries have an index, so that parsing a field
/// with thousands of keys takes linear time.
struct KeyedEntries<Value: Hashable & Sendable>: Sendable {
    struct Entry: Hashable, Sendable {
        var key: String
        var value: Value
    }

    private static var indexThreshold: Int { 16 }

    private(set) var entries: [Entry] = []
    private var positions: [String: Int] = [:]

    subscript(key: String) -> Value? {
        get { position(of: key).map { entries[$0].value } }
        set {
            guard let newValue else { return remove(key) }
            if let position = position(of: key) {
                entries[position].value = newValue
            } else {
                entries.append(Entry(key: key, value: newValue))
                indexLastEntry()
            }
        }
    }

    private func position(of key: String) -> Int? {
        entries.count > Self.indexThreshold ? positions[key] : entries.firstIndex { $0.key == key }
    }

    private mutating func remove(_ key: String) {
        guard let position = position(of: key) else { return }
        entries.remove(at: position)
        rebuildIndex()
    }

    private mutating func indexLastEntry() {
        if entries.count == Self.indexThreshold + 1 {
            rebuildIndex()
        } else if let last = entries.last, entries.count > Self.indexThreshold {
            positions[last.key] = entries.count - 1
        }
    }

    private mutating func rebuildIndex() {
        positions.removeAll()
        guard entries.count > Self.indexThreshold else { return }
        for (position, entry) in entries.enumerated() {
            positions[entry.key] = position
        }
    }
}

extension KeyedEntries: Hashable {
    static func == (left: KeyedEntries, right: KeyedEntries) -> Bool { left.entries == right.entries }

    func hash(into hasher: inout Hasher) { hasher.combine(entries) }
}
