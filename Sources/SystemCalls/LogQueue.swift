/// A bounded queue of lines between the threads that log and the thread that writes. The queue keeps the order of the
/// lines, and its operations never wait.
///
/// An entry that does not fit is dropped and counted. Later entries are also dropped until the next batch is removed.
/// So a batch has no gap, and all dropped entries are newer than its entries.
package struct LogQueue<Entry> {
    package struct Batch {
        package var entries: [Entry]
        /// The number of entries that were dropped after the last of `entries`.
        package var dropped: Int
    }

    package let maxEntries: Int
    package let maxBytes: Int
    /// The number of entries that were dropped since the queue was created.
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

    /// Appends an entry. The new entry replaces the newest entry of the queue if `isReplaceable` returns true for that
    /// entry; the replaced entry is not counted as dropped.
    package mutating func append(_ entry: Entry, size: Int, replacing isReplaceable: (Entry) -> Bool) {
        if dropped == 0, let last = entries.last, isReplaceable(last) {
            entries.removeLast()
            bytes -= lastSize
        }
        append(entry, size: size)
    }

    /// Whether ``removeAll()`` would return nil.
    package var isEmpty: Bool { entries.isEmpty && dropped == 0 }

    /// Removes and returns all entries; returns nil if there are no entries and no entry was dropped.
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
