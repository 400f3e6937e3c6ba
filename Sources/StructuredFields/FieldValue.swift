/// The type of an entire field: ``Item``, ``List`` or ``OrderedDictionary`` (RFC 9651 section 3).
package protocol FieldValue: Hashable, Sendable {
    /// Parses the combined value of a field, without its name.
    init(parsing bytes: some Collection<UInt8>) throws(ParseFailure)

    /// The canonical value (RFC 9651 section 4.1).
    func serialized() throws(SerializationFailure) -> String
}

extension FieldValue {
    /// Parses the combined value of a field, without its name.
    package init(parsing value: String) throws(ParseFailure) {
        try self.init(parsing: value.utf8)
    }

    /// Parses the field lines of one field, in the order received, combined with a comma (RFC 9651 section 4.2).
    ///
    /// Without lines the value is empty: a List or Dictionary then has no members, and an Item throws an error.
    package init(parsing lines: [String]) throws(ParseFailure) {
        try self.init(parsing: lines.joined(separator: ", "))
    }
}

/// A value with its parameters (RFC 9651 section 3.3).
package struct Item: Hashable, Sendable {
    package var value: BareItem
    package var parameters: Parameters

    package init(_ value: BareItem, parameters: Parameters = [:]) {
        self.value = value
        self.parameters = parameters
    }
}

extension Item: FieldValue {
    /// Parses a field whose type is Item (RFC 9651 section 4.2.3). Throws an error if the value is empty.
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

/// The value of an Item or of a parameter (RFC 9651 section 3.3).
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

    /// The largest magnitude of an Integer and of a Date (RFC 9651 section 3.3.1 and section 3.3.7).
    static let maxInteger = 999_999_999_999_999
}

/// The parameters of an Item or an Inner List: keys with values, in order (RFC 9651 section 3.1.2).
package typealias Parameters = KeyedEntries<BareItem>

/// Members in order, separated by commas (RFC 9651 section 3.1).
package struct List: Hashable, Sendable {
    package var members: [Member]

    package init(_ members: [Member] = []) {
        self.members = members
    }
}

extension List: FieldValue {
    /// Parses a field whose type is List (RFC 9651 section 4.2.1). An empty value is an empty list.
    package init(parsing bytes: some Collection<UInt8>) throws(ParseFailure) {
        var parser = try Parser(bytes)
        self = try parser.list()
        try parser.finish()
    }

    /// The canonical value. An empty list has an empty value; the field is then not sent (RFC 9651 section 4.1).
    package func serialized() throws(SerializationFailure) -> String {
        var serializer = Serializer()
        try serializer.append(self)
        return serializer.text
    }
}

/// A member of a List or the value of a Dictionary's member (RFC 9651 section 3.1, section 3.2).
package enum Member: Hashable, Sendable {
    case item(Item)
    case innerList(InnerList)
}

/// A list of Items in parentheses, which can be empty, and the parameters of the list (RFC 9651 section 3.1.1).
package struct InnerList: Hashable, Sendable {
    package var items: [Item]
    package var parameters: Parameters

    package init(_ items: [Item] = [], parameters: Parameters = [:]) {
        self.items = items
        self.parameters = parameters
    }
}

/// A Dictionary: keys with members, in order (RFC 9651 section 3.2).
package typealias OrderedDictionary = KeyedEntries<Member>

extension KeyedEntries: FieldValue where Value == Member {
    /// Parses a field whose type is Dictionary (RFC 9651 section 4.2.2). An empty value is an empty dictionary.
    ///
    /// If a key appears twice, the last member is kept, at the position of the first.
    package init(parsing bytes: some Collection<UInt8>) throws(ParseFailure) {
        var parser = try Parser(bytes)
        self = try parser.dictionary()
        try parser.finish()
    }

    /// The canonical value. An empty dictionary has an empty value; the field is then not sent (RFC 9651 section 4.1).
    package func serialized() throws(SerializationFailure) -> String {
        var serializer = Serializer()
        try serializer.append(self)
        return serializer.text
    }
}

/// Keys with values, in order: parameters or a dictionary.
///
/// Setting a key that is present replaces its value and keeps its position. Two objects are equal if their keys, values
/// and order are equal.
package struct KeyedEntries<Value: Hashable & Sendable>: Sendable {
    fileprivate struct Entry: Hashable, Sendable {
        var key: String
        var value: Value
    }

    /// If there are only a few entries, they are searched one by one. More entries have an index, so that parsing a
    /// field with thousands of keys takes linear time.
    private static var indexThreshold: Int { 16 }

    private var entries: [Entry] = []
    private var positions: [String: Int] = [:]

    package init() {}

    package var count: Int { entries.count }

    package var isEmpty: Bool { entries.isEmpty }

    /// The keys, in order.
    package var keys: [String] { entries.map(\.key) }

    /// The value of `key`; `nil` if there is none. Setting `nil` removes the entry.
    package subscript(key: String) -> Value? {
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
    package static func == (left: KeyedEntries, right: KeyedEntries) -> Bool { left.entries == right.entries }

    package func hash(into hasher: inout Hasher) { hasher.combine(entries) }
}

extension KeyedEntries: Sequence {
    package typealias Element = (key: String, value: Value)

    package struct Iterator: IteratorProtocol {
        fileprivate var entries: IndexingIterator<[Entry]>

        package mutating func next() -> Element? {
            entries.next().map { (key: $0.key, value: $0.value) }
        }
    }

    package func makeIterator() -> Iterator { Iterator(entries: entries.makeIterator()) }

    package var underestimatedCount: Int { count }
}

extension KeyedEntries: ExpressibleByDictionaryLiteral {
    /// If a key is given twice, the last value is kept, at the position of the first.
    package init(dictionaryLiteral elements: (String, Value)...) {
        for (key, value) in elements {
            self[key] = value
        }
    }
}
