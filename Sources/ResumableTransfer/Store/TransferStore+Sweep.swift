import Foundation
import SystemCalls

extension TransferStore {
    /// The entries and files that ``sweep(olderThan:)`` has removed.
    public struct Sweep: Sendable, Hashable {
        /// The entries that were removed, with the partial files of their downloads.
        public var entries: [Entry] = []
        /// The URLs of all other files that were removed.
        public var files: [URL] = []
    }

    /// Removes the entries that no transfer has saved for some time, with the partial files of their downloads, and
    /// files that killed processes have left.
    ///
    /// Such files are incomplete states and locks in the directory of the store; and, in the storage directory of the
    /// client, partial files and tickets that no entry needs. If other programs, or transfers that are not in this store,
    /// use the same storage directory, their files of that age are removed too, and these transfers cannot be resumed
    /// afterwards. To prevent this, set another ``TransferClient/Configuration/storageDirectory`` for the client.
    ///
    /// Nothing that a running transfer uses is removed. While a state cannot be read, the storage directory is not swept.
    /// Uploads are not deleted on the server, which removes them when their lifetime has passed. Files that cannot be
    /// removed are left.
    /// - Parameter age: the time since the last change of a file after which it is removed, with a resolution of one
    ///   second.
    /// - Returns: the entries and files that were removed.
    public func sweep(olderThan age: Duration) async -> Sweep {
        let (time, overflows) = SystemClock.realtimeSeconds().subtractingReportingOverflow(age.components.seconds)
        let limit = overflows ? .max : time
        return await BlockingWork.run {
            var sweep = Sweep()
            sweepDirectory(before: limit, &sweep)
            sweepStorage(before: limit, &sweep)
            return sweep
        }
    }

    // MARK: The directory of the store

    /// The maximum number of entries that are locked at the same time. Each has an open file.
    private static let maxLockedEntries = 64

    /// The directory is synchronized once, at the end, because nothing is reported before. After a crash of the system
    /// until then, any of the removed names may exist again: a lock that no process holds, an incomplete state, or an
    /// entry whose partial file may be missing. If the entry is resumed, the download begins again; otherwise the next
    /// sweep removes it, because the time of its last change is the same.
    private func sweepDirectory(before limit: Int64, _ sweep: inout Sweep) {
        let names = directory.names().map { FilePath($0) }
        let states = names.filter { $0.hasSuffix(StateFile.suffix) }
        let locks = names.filter { $0.hasSuffix(StateFile.lockSuffix) }
        let temporaries = names.filter { $0.hasSuffix(PrivateDirectory.temporarySuffix) }
        // Locks come first, because the removal of another file also removes the lock. States come last, because several
        // of them are locked at the same time.
        for name in locks + temporaries {
            guard let file = lockIfOld(name, limit) else { continue }
            if !name.hasSuffix(StateFile.lockSuffix) { directory.unlink(name) }
            sweep.files.append(directory.path(of: name).fileURL)
            // This removes the lock file.
            file.release()
        }
        var removals: [EntryRemoval] = []
        for name in states {
            // The transfer may have ended before the lock was acquired.
            guard let file = lockIfOld(name, limit), isOld(name, limit), let removal = removePartialFiles(name, file)
            else { continue }
            removals.append(removal)
            if removals.count == Self.maxLockedEntries { finish(&removals, &sweep) }
        }
        finish(&removals, &sweep)
        if sweep != Sweep() { directory.synchronize() }
    }

    /// Locks the entry to which a file of the directory belongs. The lock of a transfer that is running protects all of
    /// its files.
    /// - Returns: `nil` if the file does not belong to an entry or is not old, or if a transfer is running.
    private func lockIfOld(_ name: FilePath, _ limit: Int64) -> StateFile? {
        guard let stem = Self.stem(ofFile: name), isOld(name, limit) else { return nil }
        return try? StateFile.lock(stem, in: directory)
    }

    /// The name of the entry to which a file of the directory belongs, without a suffix; `nil` for a file that does not
    /// belong to a store.
    private static func stem(ofFile name: FilePath) -> FilePath? {
        func removing(_ prefix: FilePath, _ suffix: FilePath) -> FilePath? {
            guard name.bytes.starts(with: prefix.bytes), name.hasSuffix(suffix) else { return nil }
            let stem = FilePath(name.bytes.dropFirst(prefix.bytes.count).dropLast(suffix.bytes.count))
            return stem.isEmpty || stem.bytes.first == UInt8(ascii: ".") ? nil : stem
        }
        return removing("", StateFile.suffix) ?? removing("", StateFile.lockSuffix)
            ?? removing(".", StateFile.suffix + PrivateDirectory.temporarySuffix)
    }

    private func isOld(_ name: FilePath, _ limit: Int64) -> Bool {
        directory.modified(name).map { $0 <= limit } ?? false
    }

    /// An entry whose partial files were removed, and whose state is to be removed.
    private struct EntryRemoval {
        let entry: Entry
        /// The state, which is locked.
        let file: StateFile
        /// The directory of the partial files; `nil` if there are none, or if a sweep finds them without the state.
        let partialDirectory: FilePath?
    }

    private func removePartialFiles(_ name: FilePath, _ file: StateFile) -> EntryRemoval? {
        guard let stem = Self.stem(ofFile: name), let entry = directory.entry(stem, isLockPossible: false) else {
            return nil
        }
        if case .download(let checkpoint)? = entry.resumeData?.record.content {
            // If another transfer uses the partial file, the entry is kept for it.
            guard (try? client.storage.discard(checkpoint)) != nil else { return nil }
        }
        return EntryRemoval(entry: entry, file: file, partialDirectory: entry.resumeData?.partialPath?.directory)
    }

    /// Removes the states, and releases their locks.
    ///
    /// Only the state has the name of a partial file beside a destination. So the removal of the partial file has to be
    /// durable before that of the state.
    private func finish(_ removals: inout [EntryRemoval], _ sweep: inout Sweep) {
        for path in Set(removals.compactMap(\.partialDirectory)) {
            try? FileDescriptor.open(path, [.readOnly, .directory]).synchronize()
        }
        for removal in removals {
            removal.file.unlink()
            if !directory.contains(removal.entry.stem + StateFile.suffix) { sweep.entries.append(removal.entry) }
            removal.file.release()
        }
        removals = []
    }

    // MARK: The storage directory of the client

    private func sweepStorage(before limit: Int64, _ sweep: inout Sweep) {
        let storage = client.storage
        guard let storageDirectory = try? FileDescriptor.open(storage.path, [.readOnly, .directory, .noFollow]),
            let names = try? storageDirectory.entryNames(), let stems = try? directory.stems(in: directory.readNames())
        else { return }
        var needed: Set<FilePath> = []
        for stem in stems {
            let entry = directory.entry(stem, isLockPossible: false)
            // It is unknown which files a state that cannot be read needs.
            if entry?.damage != nil { return }
            needed.formUnion(entry?.resumeData?.storedNames ?? [])
        }
        for name in names.sorted().map({ FilePath($0) }) {
            guard PartialFileName.isValid(name, for: nil) || ResumeTicket.isFileName(name), !needed.contains(name),
                storageDirectory.removeUnused(name, before: limit)
            else { continue }
            sweep.files.append(storage.path.appending(name).fileURL)
        }
    }
}

extension ResumeData {
    /// The names of the files in the storage directory that the data needs.
    fileprivate var storedNames: [FilePath] {
        var names = [FilePath(ResumeTicket(id: record.id, generation: 0).fileName)]
        if case .download(let checkpoint) = record.content, checkpoint.destination == nil {
            names += [checkpoint.partialName] + (checkpoint.earlier ?? []).map(\.partialName)
        }
        return names
    }
}

extension ResumeTicket {
    private static let suffix: FilePath = ".ticket"

    /// Whether a ticket can have this file name.
    static func isFileName(_ name: FilePath) -> Bool {
        guard let text = FilePath(name.bytes.dropLast(suffix.bytes.count)).text, let id = UUID(uuidString: text)
        else { return false }
        return ResumeTicket(id: id, generation: 0).fileName == name.text
    }
}

extension FileDescriptor {
    /// Removes a file of this directory if its last change was not after `limit`, in seconds since 1970, and no transfer
    /// has locked it.
    /// - Returns: whether it was removed.
    fileprivate func removeUnused(_ name: FilePath, before limit: Int64) -> Bool {
        do throws(Errno) {
            let file = try open(at: name, [.readWrite, .noFollow, .nonBlocking])
            guard try file.status().modified.seconds <= limit, try file.tryLock() else { return false }
            // The name may have been removed, and given to another file, before the lock was acquired.
            guard isName(name, of: file) else { return false }
            try unlink(at: name)
            return true
        } catch {
            return false
        }
    }
}
