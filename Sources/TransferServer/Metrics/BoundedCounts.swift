/// Counts by key for a bounded number of keys. Further keys are counted under one common key.
///
/// So memory and the number of time series are bounded for any input.
struct BoundedCounts<Key: Hashable & Sendable>: Sendable {
    private(set) var counts: [Key: Int]
    private let capacity: Int
    private let others: Key

    /// - Parameter known: keys that are present from the start, with the count 0.
    init(capacity: Int, others: Key, known: [Key] = []) {
        self.capacity = capacity
        self.others = others
        counts = Dictionary(known.map { ($0, 0) }, uniquingKeysWith: { first, _ in first })
    }

    mutating func add(_ count: Int = 1, to key: Key) {
        let isKnown = counts[key] != nil || counts.count < capacity
        counts[isKnown ? key : others, default: 0] += count
    }

    subscript(key: Key) -> Int { counts[key] ?? 0 }
}

extension BoundedCounts where Key: Comparable {
    var sorted: [(key: Key, count: Int)] { counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
}
