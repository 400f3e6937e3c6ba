import HTTPSemantics
import SystemCalls

/// The file of an upload without a row, which is published under a name that no other file has. Threads that publish such
/// files at the same time share the synchronizations and the commit.
///
/// The bytes are written, the directories of the name exist, and the caller holds the path lock of the name.
struct NewFile: Sendable {
    /// The maximum size of files, in bytes, that share synchronizations.
    fileprivate static let maxSharedSize: Int64 = 1 << 20

    var area: any PublishingBlobArea
    var blob: any Blob
    /// The name of the bytes.
    var blobName: String
    var name: PublishedName
    /// The number of bytes.
    var size: Int64
    /// Returns the end of the upload, once the attributes of the file are known.
    var ending: @Sendable (PublishedFile.Attributes) throws(StoreError) -> UploadEnding

    indirect enum Outcome: Sendable {
        /// The file is durable. The result is that of the commit.
        case published(UploadEnding, Result<RemovedRows, StoreError>)
        /// Another object has the name. The bytes kept their old name.
        case occupied
        /// The bytes could not be made durable, and kept their name.
        case unsynchronized(Errno)
        /// The bytes could not get the name, and kept their old name.
        case unnamed(StoreError)
        /// The bytes have the new name, and the caller has to withdraw the file.
        case failed(StoreError)
    }
}

extension StoreContext {
    /// Publishes a file, together with those of other threads.
    func publish(_ file: NewFile) -> NewFile.Outcome {
        // No file waits for a large one. Without a common synchronization, each thread waits for its own file, at the
        // same time as the others.
        let area = file.area
        let isAlone = file.size > NewFile.maxSharedSize || !area.canSynchronizeTogether
        if shouldSynchronize && isAlone { return publishAlone(file) }
        let outcomes = newFiles.run([file]) { files -> (count: Int, named: NamedFiles?) in
            // A common synchronization may have become slow while these files waited for it.
            let areTogether = files.count == 1 || !shouldSynchronize || area.canSynchronizeTogether
            return (files.count, areTogether ? name(files) : nil)
        } then: { begun -> [NewFile.Outcome?] in
            begun.named.map { record($0) } ?? Array(repeating: nil, count: begun.count)
        }
        return (outcomes?[0] ?? nil) ?? publishAlone(file)
    }

    /// Publishes files with one synchronization of their contents, one of their names, and one commit.
    ///
    /// The contents are durable before a file gets its name, and the name before a row reports the end of the upload.
    /// So after a crash at any point, a file with its name is complete; without a row it is only missing in the usage
    /// of its principal. The removal of the old name need not be durable: no row refers to it, so the sweep removes it
    /// if it exists again after a power loss.
    func publishTogether(_ files: [NewFile]) -> [NewFile.Outcome] { record(name(files)) }

    private func publishAlone(_ file: NewFile) -> NewFile.Outcome { publishTogether([file])[0] }

    /// Files after the attempt to give each its name.
    private struct NamedFiles {
        var files: [NewFile]
        /// The outcomes of the files that got no name; nil for each file that has its name.
        var outcomes: [NewFile.Outcome?]
        /// The epoch from before the first name was changed.
        var epoch: SynchronizationEpoch
    }

    private func name(_ files: [NewFile]) -> NamedFiles {
        let area = files[0].area
        var named = NamedFiles(files: files, outcomes: [], epoch: area.synchronizationEpoch)
        do throws(Errno) {
            if shouldSynchronize {
                try observing(.content) { () throws(Errno) in try area.synchronize(files.map(\.blob)) }
            }
            named.epoch = area.synchronizationEpoch
            named.outcomes = files.map { rename($0) }
        } catch {
            named.outcomes = files.map { _ in .unsynchronized(error) }
        }
        return named
    }

    /// Gives the bytes their new name. Returns nil if this succeeds.
    private func rename(_ file: NewFile) -> NewFile.Outcome? {
        do throws(StoreError) {
            _ = try file.area.publish(file.blobName, as: file.name, replaces: false)
            return nil
        } catch {
            // The bytes may have got the name if a storage on another machine did not respond.
            if case .unavailable = error { return .failed(error) }
            return error.isAboutOccupiedName ? .occupied : .unnamed(error)
        }
    }

    /// Makes the names durable, and then the ends of the uploads.
    private func record(_ named: NamedFiles) -> [NewFile.Outcome] {
        let failure = synchronizeNames(named)
        var changes: [CatalogChange] = []
        let outcomes = zip(named.files, named.outcomes).map { file, outcome -> NewFile.Outcome in
            if let outcome { return outcome }
            do throws(StoreError) {
                if let failure { throw failure }
                let ending = try ending(of: file)
                changes.append(ending.change.combined)
                // The result of the commit follows.
                return .published(ending, .failure(.superseded))
            } catch {
                return .failed(error)
            }
        }
        if changes.isEmpty { return outcomes }
        var commits = catalog.commit(changes).makeIterator()
        return outcomes.map { outcome in
            guard case .published(let ending, _) = outcome, let commit = commits.next() else { return outcome }
            return .published(ending, commit)
        }
    }

    /// - Returns: the failure; nil if the names are durable, or need not be.
    private func synchronizeNames(_ named: NamedFiles) -> StoreError? {
        guard shouldSynchronize else { return nil }
        let names = zip(named.files, named.outcomes).compactMap { $1 == nil ? $0.name : nil }
        if names.isEmpty { return nil }
        do throws(StoreError) {
            try observing(.publication) { () throws(StoreError) in
                try named.files[0].area.synchronizeNames(names, since: named.epoch)
            }
            return nil
        } catch {
            return error
        }
    }

    private func ending(of file: NewFile) throws(StoreError) -> UploadEnding {
        try file.ending(translating("read attributes") { () throws(Errno) in try file.blob.attributes() })
    }
}
