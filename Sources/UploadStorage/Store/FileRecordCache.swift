import SystemCalls

/// Records of files that were downloaded recently, so that a download of one of them does not read the catalog.
///
/// A record describes exactly one publication, because no two publications have the same time, and it does not change
/// as long as the file is published. So a record that describes an opened file is valid, however old it is. In a file
/// system that stores complete seconds, times can be the same, so each publication removes the record of its name. A missing
/// record is not cached, because it can be written later.
final class FileRecordCache: Sendable {
    private struct Generations {
        var recent: [String: FileRecord] = [:]
        /// The records that were in `recent` when it was last full.
        var older: [String: FileRecord] = [:]
    }

    /// The maximum number of records in each generation.
    private let capacity: Int
    private let generations = Monitor(Generations())

    /// The maximum size of a name and its fields in bytes. Together with `capacity` it bounds the memory of the cache.
    static let maxEntrySize = 1 << 10

    init(capacity: Int = 1024) { self.capacity = capacity }

    /// Returns the record of a published file: a cached record that describes the file, or otherwise the result of
    /// `read`.
    func record(
        of found: PublishedBlob, named path: String, _ read: (String) throws(StoreError) -> FileRecord?
    ) throws(StoreError) -> FileRecord? {
        if let known = known(path), known.describes(found) { return known }
        guard let record = try read(path), record.describes(found) else { return nil }
        if Self.size(of: record) <= Self.maxEntrySize { insert(record, path) }
        return record
    }

    func remove(_ path: String) {
        generations.withLock { generations in
            generations.recent[path] = nil
            generations.older[path] = nil
        }
    }

    private func known(_ path: String) -> FileRecord? {
        generations.withLock { generations in
            if let record = generations.recent[path] { return record }
            guard let record = generations.older[path] else { return nil }
            insert(record, path, in: &generations)
            return record
        }
    }

    private func insert(_ record: FileRecord, _ path: String) {
        generations.withLock { insert(record, path, in: &$0) }
    }

    private func insert(_ record: FileRecord, _ path: String, in generations: inout Generations) {
        if generations.recent.count >= capacity {
            generations = Generations(older: generations.recent)
        }
        generations.recent[path] = record
    }

    private static func size(of record: FileRecord) -> Int {
        record.fields.reduce(record.name.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    }
}
