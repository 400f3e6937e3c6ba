/// Keys with values in the order in which the keys first appeared: the storage of parameters and dictionaries.
///
/// A few entries are searched in order. For more entries there is an index, so that a field with thousands of keys
/// needs linear time.
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
