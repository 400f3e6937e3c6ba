/// A queue of lines between the threads that log and the thread that writes. It keeps their order, is bounded, and
/// never waits.
///
/// An entry that does not fit is dropped and counted, and so is every later one until the next batch is removed. So a
/// batch has no gap, and all dropped entries came after it.
package struct LogQueue<Entry> {
    package struct Batch {
        package var entries: [Entry]
        /// Entries that were dropped after these.
        package var dropped: Int
    }

    package let maxEntries: Int
    package let maxBytes: Int
    /// Entries dropped since the queue was created.
    package private(set) var droppedTotal = 0
    private var entries: [Entry] = []
    private var bytes = 0
    private var lastSize = 0
    private var dropped = 0

    package init(maxEntries: Int = .max, maxBytes: Int) {
        self.maxEntries = maxEntries
        self.maxBytes = maxBytes
    }

    /// - Parameter size: the bytes that the entry occupies, approximately.
    package mutating func append(_ entry: Entry, size: Int) {
        guard dropped == 0, entries.count < maxEntries, bytes + size <= maxBytes else {
            countDropped(1)
            dropped += 1
            return
        }
        entries.append(entry)
        bytes += size
        lastSize = size
    }

    /// Appends an entry. If the last entry is still in the queue and `isReplaceable`, the new entry replaces it, and it
    /// is not counted as dropped.
    package mutating func append(_ entry: Entry, size: Int, replacing isReplaceable: (Entry) -> Bool) {
        if dropped == 0, let last = entries.last, isReplaceable(last) {
            entries.removeLast()
            bytes -= lastSize
        }
        append(entry, size: size)
    }

    /// Whether ``removeAll()`` would return nil.
    package var isEmpty: Bool { entries.isEmpty && dropped == 0 }

    /// Removes all entries; nil if there are none, and none was dropped.
    package mutating func removeAll() -> Batch? {
        guard !isEmpty else { return nil }
        defer {
            entries = []
            bytes = 0
            dropped = 0
        }
        return Batch(entries: entries, dropped: dropped)
    }

    /// Counts entries that were removed from the queue and could not be written.
    package mutating func countDropped(_ count: Int) { droppedTotal += count }
}
