/// Log entries between the threads that log and the thread that writes: in their order, bounded, and never waiting.
///
/// An entry that does not fit is dropped and counted, and so is every later one until the next batch is removed: the
/// entries of a batch have no gap, and all dropped ones come after them.
struct LogQueue<Entry> {
    struct Batch {
        var entries: [Entry]
        /// Entries that were dropped after these.
        var dropped: Int
    }

    let maxEntries: Int
    let maxBytes: Int
    /// Entries dropped since the queue was created.
    private(set) var droppedTotal = 0
    private var entries: [Entry] = []
    private var bytes = 0
    private var dropped = 0

    init(maxEntries: Int, maxBytes: Int) {
        self.maxEntries = maxEntries
        self.maxBytes = maxBytes
    }

    /// - Parameter size: the bytes that the entry occupies, approximately.
    mutating func append(_ entry: Entry, size: Int) {
        guard dropped == 0, entries.count < maxEntries, bytes + size <= maxBytes else {
            countDropped(1)
            dropped += 1
            return
        }
        entries.append(entry)
        bytes += size
    }

    /// Removes all entries; nil if there are none, and none was dropped.
    mutating func removeAll() -> Batch? {
        guard !entries.isEmpty || dropped > 0 else { return nil }
        defer {
            entries = []
            bytes = 0
            dropped = 0
        }
        return Batch(entries: entries, dropped: dropped)
    }

    /// Counts entries that were removed from the queue and could not be written.
    mutating func countDropped(_ count: Int) { droppedTotal += count }
}
