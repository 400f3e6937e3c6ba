import SystemCalls

extension StoreContext {
    /// The result of an attempt to move bytes to their published name.
    enum Placement {
        /// `hasOldName`: whether a file may still have the old name of the bytes.
        case published(PublishedFile.Attributes, hasOldName: Bool)
        /// The file with the published name has changed since the publication was decided.
        case occupied
        /// The bytes have neither their old nor their published name.
        case lost
        /// The file could not be made durable, and has to be withdrawn.
        case failed(StoreError)
    }

    /// Returns the file that a publication would replace; nil if there is none. Throws `pathTooLong` if no file can have
    /// the name, and `targetIsDirectory` or `targetIsSpecial` if anything else has it.
    func lookUp(_ name: PublishedName) throws(StoreError) -> PublishedBlob? {
        try area.requirePossible(name)
        do throws(StoreError) {
            return try area.openPublished(name)
        } catch {
            guard error == .notFound else { throw error }
            return nil
        }
    }

    /// Carries out an intent, or detects that it has been carried out already. Safe to repeat after an interruption at
    /// any point. The caller must hold the path lock of the name, and the content must be durable.
    ///
    /// Afterwards the old name belongs to the replaced file, is a second name of the new file, or is free. The caller
    /// removes it once the publication is recorded: until then, the replaced file may have to be restored.
    func place(
        _ intent: PublicationIntent, from name: String, _ blob: (any Blob)?, in area: any PublishingBlobArea
    ) throws(StoreError) -> Placement {
        do throws(StoreError) {
            let current = try lookUp(intent.name)
            if let current, current.identity == intent.identity {
                // The bytes were renamed before an interruption, and the synchronization of the rename may have failed.
                // A success now would not prove that the rename is durable, so the names are written again. The
                // content was made durable before the intent.
                if shouldSynchronize {
                    let epoch = try area.republish(intent.name, from: name, modified: nextModification())
                    if let error = synchronize(intent.name, nil, in: area, since: epoch) { return .failed(error) }
                }
                return try lookUp(intent.name).map { .published($0.file.attributes, hasOldName: true) } ?? .lost
            }
            let isPossiblyMoved = blob == nil
            guard let blob = try existing(blob, name), try hasIntendedIdentity(blob, intent) else { return .lost }
            if let current, !intent.replaces(current.file.attributes, isPossiblyMoved: isPossiblyMoved) {
                return .occupied
            }
            try translating("set the time of a publication") { () throws(Errno) in
                try blob.setModified(nextModification())
            }
            // The directories are made before the bytes are moved: otherwise a crash could remove a new directory
            // together with the bytes.
            try area.makeDirectories(for: intent.name, durably: shouldSynchronize)
            let epoch = try area.publish(name, as: intent.name, replaces: current != nil)
            if let error = synchronize(intent.name, blob, in: area, since: epoch) { return .failed(error) }
            let attributes = try translating("read attributes") { () throws(Errno) in try blob.attributes() }
            return .published(attributes, hasOldName: current != nil)
        } catch {
            if error.isAboutOccupiedName { return .occupied }
            throw error
        }
    }

    /// Makes a publication durable.
    /// - Returns: the error, if there is one. After an error, the success of a second attempt would not prove that the
    ///   publication is durable.
    private func synchronize(
        _ name: PublishedName, _ blob: (any Blob)?, in area: any PublishingBlobArea, since epoch: SynchronizationEpoch
    ) -> StoreError? {
        guard shouldSynchronize else { return nil }
        do throws(StoreError) {
            try observing(.publication) { () throws(StoreError) in
                try area.synchronizePublication(name, of: blob, since: epoch)
            }
            return nil
        } catch {
            return error
        }
    }

    /// Restores the names as they were before a publication, durably. The call can be repeated after an interruption at
    /// any point. The caller must hold the path lock of the name.
    ///
    /// Until this method returns, `name` may belong to the replaced file.
    func withdraw(
        _ intent: PublicationIntent, from name: String, of id: UploadID, in area: any PublishingBlobArea
    ) throws(StoreError) {
        if let error = failedPublications.synchronizationError(id) { throw error }
        var current: PublishedBlob?
        do throws(StoreError) { current = try lookUp(intent.name) } catch {
            guard [.targetIsDirectory, .targetIsSpecial, .parentIsFile].contains(error) else { throw error }
        }
        let epoch: SynchronizationEpoch
        if current?.identity == intent.identity {
            epoch = try area.withdraw(intent.name, to: name)
        } else if current != nil, shouldSynchronize, let blob = try existing(nil, name),
            try hasIntendedIdentity(blob, intent)
        {
            // The names were restored before the store was opened, and their synchronization may have failed. A
            // success now would not prove that the names are durable, so both names are written again.
            epoch = try area.withdraw(intent.name, to: name)
            _ = try area.withdraw(intent.name, to: name)
        } else {
            epoch = area.synchronizationEpoch
        }
        guard shouldSynchronize else { return }
        do throws(StoreError) { try area.synchronizeWithdrawal(intent.name, since: epoch) } catch {
            failedPublications.setSynchronizationError(id, error)
            throw error
        }
    }

    /// Returns whether `blob` contains the bytes of the upload. After a withdrawal, their name may belong to the
    /// replaced file.
    private func hasIntendedIdentity(_ blob: any Blob, _ intent: PublicationIntent) throws(StoreError) -> Bool {
        try translating("read the identity of the file") { () throws(Errno) in try blob.identity() } == intent.identity
    }

    private func existing(_ blob: (any Blob)?, _ name: String) throws(StoreError) -> (any Blob)? {
        if let blob { return blob }
        return try translating("open the content file of an upload") { () throws(Errno) -> (any Blob)? in
            do throws(Errno) {
                return try area.open(name)
            } catch {
                if error == .noSuchFile { return nil }
                throw error
            }
        }
    }
}

extension StoreError {
    /// Whether bytes cannot get a name because another object has the name, or a part of its path.
    var isAboutOccupiedName: Bool {
        [.preconditionFailed, .targetIsDirectory, .targetIsSpecial, .parentIsFile].contains(self)
    }
}

/// Publications that have failed since the store was opened and are not withdrawn yet.
///
/// The row of the upload also records the failure, but only once the catalog can be written. Until then, only this
/// object prevents a second attempt of the publication when the upload is loaded again.
final class FailedPublications: Sendable {
    private let errors = Monitor<[UploadID: StoreError?]>([:])

    func contains(_ id: UploadID) -> Bool { errors.withLock { $0[id] != nil } }

    func insert(_ id: UploadID) {
        errors.withLock { errors in
            if errors[id] == nil { errors[id] = .some(nil) }
        }
    }

    func remove(_ id: UploadID) { errors.withLock { _ = $0.removeValue(forKey: id) } }

    /// The error of the synchronization of the names. A second synchronization by this process would not prove that
    /// they are durable.
    func synchronizationError(_ id: UploadID) -> StoreError? { errors.withLock { $0[id] ?? nil } }

    func setSynchronizationError(_ id: UploadID, _ error: StoreError) { errors.withLock { $0[id] = error } }
}
