import SystemCalls

/// The sorted names of large directories of which pages were listed recently. So not every page reads the entire
/// directory. Changes of the directory, by any program, are observed and applied before each page.
final class NameIndexes: Sendable {
    private static let maxCount = 16
    /// The maximum number of bytes of all names. The names of a larger directory are not kept.
    private static let maxBytes = 64 << 20
    /// The number of names that are read before they are sorted.
    private static let batchSize = 128 << 10
    /// Nanoseconds after the last page until an index is removed.
    private static let idleTime: Int64 = 60_000_000_000

    private struct Index {
        let directory: String
        let watch: DirectoryWatch
        /// Nil if the directory is too large, or changes too fast.
        var names: SortedNames?
        var lastUse: Int64

        var byteCount: Int { names?.byteCount ?? 0 }

        /// Reads all names, unless they are too many.
        mutating func read(_ directory: any PublishedDirectory) throws(Errno) {
            var names = SortedNames()
            var batch = NameBatch()
            while try directory.nextName({ batch.append($0) }) != nil {
                if batch.count < NameIndexes.batchSize { continue }
                names.apply(batch)
                batch = NameBatch()
                if names.byteCount > NameIndexes.maxBytes { return }
            }
            names.apply(batch)
            self.names = names
            // Changes that were made during the reading may have been missed.
            if try !update(from: directory) { self.names = nil }
        }

        /// Applies the changes since the last call; returns false if changes were lost.
        mutating func update(from directory: any PublishedDirectory) throws(Errno) -> Bool {
            var changed: Set<[UInt8]> = []
            guard try watch.forEachChange({ changed.insert(Array($0)) }) else { return false }
            var batch = NameBatch()
            for name in changed {
                // What happened to the name last cannot be derived from the order of the events: an exchange of two names
                // seems to remove both. A further change after this call will be in the next events.
                let isPresent = try directory.entry(String(decoding: name, as: UTF8.self)) != nil
                name.withUnsafeBytes { batch.append($0, isPresent: isPresent) }
            }
            if batch.count > 0 { names?.apply(batch) }
            return true
        }
    }

    /// The index that was used last is the last one. The lock is held while a directory is read, so that two requests do
    /// not read the same directory.
    private let indexes = Monitor<[Index]>([])

    /// Returns a page of a directory from which no name has been read yet.
    /// - Returns: nil if the directory has no index, because it is small, too large, or cannot be observed.
    func page(
        of directory: any PublishedDirectory, after cursor: String?, limit: Int
    ) throws(Errno) -> NamePage? {
        guard let identity = directory.identityIfLarge else { return nil }
        let now = SystemClock.monotonicNanoseconds()
        return try indexes.withLock { (indexes) throws(Errno) in
            var known: Index?
            if let position = indexes.firstIndex(where: { $0.directory == identity }) {
                known = indexes.remove(at: position)
                if known?.names != nil, try known?.update(from: directory) != true { known = nil }
            }
            if known == nil, let watch = try? directory.watch() {
                known = Index(directory: identity, watch: watch, names: nil, lastUse: now)
                try known?.read(directory)
            }
            guard var index = known else { return nil }
            // The index of a directory that is too large is removed after some time, to find out whether it still is.
            if index.names != nil { index.lastUse = now }
            let page = index.names?.page(after: cursor, limit: limit)
            indexes.append(index)
            while indexes.count > Self.maxCount || indexes.reduce(0, { $0 + $1.byteCount }) > Self.maxBytes {
                indexes.removeFirst()
            }
            return page
        }
    }

    /// The bytes of all names that are kept.
    var byteCount: Int { indexes.withLock { $0.reduce(0) { $0 + $1.byteCount } } }

    /// Removes the indexes that have not been used for some time.
    func removeUnused(at now: Int64) {
        indexes.withLock { indexes in indexes.removeAll { $0.lastUse < now - Self.idleTime } }
    }
}
