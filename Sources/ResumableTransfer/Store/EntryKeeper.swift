import SystemCalls

/// Keeps the checkpoints of one transfer in a store. The entry is locked until the transfer has ended, ``release()`` is
/// called or this object is released.
final class EntryKeeper: CheckpointStore {
    private let store: TransferStore
    private let stem: FilePath
    private let file: StateFile
    /// The values that are stored with the transfer; `nil` if those of the entry are kept.
    private let userInfo: [String: String]?

    init(_ stem: FilePath, in store: TransferStore, userInfo: [String: String]?) throws(TransferError) {
        self.store = store
        self.stem = stem
        self.userInfo = userInfo
        do throws(StateError) {
            file = try StateFile.lock(stem, in: store.directory)
        } catch {
            throw TransferError(error)
        }
    }

    /// The data of the entry; `nil` if there is no such entry.
    func load() throws(TransferError) -> ResumeData? {
        do throws(StateError) { return try file.load()?.resumeData } catch { throw TransferError(error) }
    }

    func save(_ data: ResumeData, sent: Int64?) async {
        await file.save(data, sent: sent) { [userInfo] in $0.userInfo = userInfo ?? $0.userInfo }
        guard let failure = file.saveFailure else { return }
        store.onSaveFailure?(
            TransferStore.name(of: stem),
            TransferError(.storageUnusable, "The state file \(file.path) cannot be written.", underlying: failure))
    }

    func ended(_ error: TransferError?) async {
        // After `resumeDataUsed` another transfer uses the partial file, and the entry can be resumed later.
        let isKept = error.map { $0.resumeData != nil || $0.code == .resumeDataUsed } ?? false
        await BlockingWork.run { [file] in
            if !isKept { file.remove() }
            file.release()
        }
    }

    func discard(_ data: ResumeData, request: TransferRequest) async throws(TransferError) {
        // The entry was released when the transfer ended, so another transfer may be running it.
        let keeper = try EntryKeeper(stem, in: store, userInfo: nil)
        guard let current = try keeper.load(), current.record.id == data.record.id else {
            throw TransferError(.resumeDataUsed, "The transfer is no longer in the store.")
        }
        try await store.client.discard(current, request: request)
        keeper.remove()
    }

    func remove() { file.remove() }

    /// Releases the lock now, although other threads may still have a reference to this object. The entry must not be
    /// used afterwards.
    func release() { file.release() }
}
