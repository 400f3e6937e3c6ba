import SystemCalls

/// Records of files that were downloaded recently, so that a download of one of them does not read the catalog.
///
/// A record describes exactly one publication, because no two publications have the same time, and it does not change
/// as long as the file is published. So a record that describes an opened file is valid, however old it is. In a file
/// system that stores complete seconds, times can be the same, so each publication removes the record of its name.
///
/// For a file without a record, a record without fields is cached. The file may have been published a moment ago; then
/// its publication removes the cached record after the actual record was written.
final class FileRecordCache: Sendable {
    /// A record and the attributes of the file that it describes, which are compared faster than their text in the record.
    private struct Entry {
        let record: FileRecord
        let attributes: PublishedFile.Attributes

        func describes(_ file: PublishedFile.Attributes) -> Bool {
            (attributes.size, attributes.modifiedSeconds, attributes.modifiedNanoseconds)
                == (file.size, file.modifiedSeconds, file.modifiedNanoseconds)
        }
    }

    private struct Generations {
        var recent: [String: Entry] = [:]
        /// The entries that were in `recent` when it was last full.
        var older: [String: Entry] = [:]
        /// The number of calls of ``FileRecordCache/remove(_:)``.
        var removals = 0
    }

    /// The maximum number of records in each generation.
    private let capacity: Int
    private let generations = Monitor(Generations())

    /// The maximum size of a name and its fields in bytes. Together with `capacity` it bounds the memory of the cache.
    static let maxEntrySize = 1 << 10

    init(capacity: Int = 1024) { self.capacity = capacity }

    /// Returns the record of a published file: a cached record that describes the file, or otherwise the result of
    /// `read`. If the file has no record, the result has no fields.
    func record(
        of found: PublishedBlob, named path: String, _ read: (String) throws(StoreError) -> FileRecord?
    ) throws(StoreError) -> FileRecord {
        let (cached, removals) = generations.withLock { (known(path, in: &$0), $0.removals) }
        let attributes = found.file.attributes
        if let cached, cached.describes(attributes) { return cached.record }
        let stored = try read(path)
        let record = stored.flatMap { $0.describes(found) ? $0 : nil } ?? FileRecord(ofUnrecorded: found, path)
        if Self.size(of: record) <= Self.maxEntrySize {
            generations.withLock { generations in
                // If a publication has removed a record meanwhile, the record may be that of the time before.
                if generations.removals == removals {
                    insert(Entry(record: record, attributes: attributes), path, in: &generations)
                }
            }
        }
        return record
    }

    func remove(_ path: String) {
        generations.withLock { generations in
            generations.removals += 1
            generations.recent[path] = nil
            generations.older[path] = nil
        }
    }

    private func known(_ path: String, in generations: inout Generations) -> Entry? {
        if let entry = generations.recent[path] { return entry }
        guard let entry = generations.older[path] else { return nil }
        insert(entry, path, in: &generations)
        return entry
    }

    private func insert(_ entry: Entry, _ path: String, in generations: inout Generations) {
        if generations.recent.count >= capacity {
            (generations.older, generations.recent) = (generations.recent, [:])
        }
        generations.recent[path] = entry
    }

    private static func size(of record: FileRecord) -> Int {
        record.fields.reduce(record.name.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    }
}

extension FileRecord {
    /// A record without fields, of a file that no upload created.
    fileprivate init(ofUnrecorded found: PublishedBlob, _ path: String) {
        let attributes = found.file.attributes
        self.init(
            name: path, principal: "", size: attributes.size, identity: attributes.publicationTime,
            modifiedSeconds: attributes.modifiedSeconds)
    }
}
