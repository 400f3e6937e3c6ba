import SystemCalls

/// The sorted names of large directories that were listed recently, so that not every page of a listing reads the
/// entire directory. Changes of the directory, by any program, are observed and applied before each page.
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
        /// The names; nil if the directory is too large, or changes too fast.
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
                // Names that are not UTF-8 are never listed.
                guard let text = String(validating: name, as: UTF8.self) else { continue }
                // The name is looked up, because the events do not show whether it still exists: after an exchange of two
                // names, both seem to be removed. A later change causes another event.
                let isPresent = try directory.entry(text) != nil
                name.withUnsafeBytes { batch.append($0, isPresent: isPresent) }
            }
            if batch.count > 0 { names?.apply(batch) }
            return true
        }
    }

    private struct State {
        /// The index that was used last is the last one.
        var indexes: [Index] = []
        /// The directories whose indexes are in use. These indexes are not in `indexes`.
        var used: Set<String> = []
        /// Whether a directory is being read. Only one directory at a time is, so that the memory is bounded.
        var isReading = false
    }

    private let state = Monitor(State())

    /// Returns a page of a directory. `nextName(_:)` of `directory` must not have been called before, because this
    /// function may read all of its names.
    /// - Returns: nil if the directory has no index, because it is small, too large, or cannot be observed, or because
    ///   another directory is being read.
    func page(
        of directory: any PublishedDirectory, after cursor: String?, prefix: String = "", limit: Int
    ) throws(Errno) -> NamePage? {
        guard let identity = directory.identityIfLarge else { return nil }
        // Waits until no other request uses the index of this directory.
        let known = state.waitForever { state -> Index?? in
            guard state.used.insert(identity).inserted else { return nil }
            return .some(
                state.indexes.firstIndex { $0.directory == identity }.map { state.indexes.remove(at: $0) })
        }
        var index: Index?
        defer { endUse(of: identity, index) }
        index = try current(known, identity, directory)
        return index?.names?.page(after: cursor, prefix: prefix, limit: limit)
    }

    /// Returns an index with all changes, if there can be one.
    private func current(
        _ known: Index?, _ identity: String, _ directory: any PublishedDirectory
    ) throws(Errno) -> Index? {
        let now = SystemClock.monotonicNanoseconds()
        if var index = known {
            // `lastUse` does not change for a directory that was too large, so that its index is removed after some
            // time. The next request then finds out whether the directory is still too large.
            if index.names == nil { return index }
            index.lastUse = now
            if try index.update(from: directory) { return index }
        }
        guard let watch = try? directory.watch() else { return nil }
        let isFirst = state.withLock { state in
            defer { state.isReading = true }
            return !state.isReading
        }
        guard isFirst else { return nil }
        defer { state.withLock { $0.isReading = false } }
        var index = Index(directory: identity, watch: watch, names: nil, lastUse: now)
        try index.read(directory)
        return index
    }

    private func endUse(of identity: String, _ index: Index?) {
        state.withLock { state in
            state.used.remove(identity)
            if let index { state.indexes.append(index) }
            while state.indexes.count > Self.maxCount || Self.byteCount(state.indexes) > Self.maxBytes {
                state.indexes.removeFirst()
            }
        }
        state.notifyAll()
    }

    private static func byteCount(_ indexes: [Index]) -> Int { indexes.reduce(0) { $0 + $1.byteCount } }

    /// The bytes of all names that are kept.
    var byteCount: Int { state.withLock { Self.byteCount($0.indexes) } }

    /// Removes the indexes that have not been used for some time.
    func removeUnused(at now: Int64) {
        state.withLock { state in state.indexes.removeAll { $0.lastUse < now - Self.idleTime } }
    }
}
