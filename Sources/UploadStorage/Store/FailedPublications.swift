import SystemCalls

/// Publications that failed in this life of the store and are not withdrawn yet.
///
/// The row says so, too, once that could be recorded. Until then only this keeps a publication from being tried again when
/// its upload is loaded anew.
final class FailedPublications: Sendable {
    private let errors = Monitor<[UploadID: StoreError?]>([:])

    func contains(_ id: UploadID) -> Bool { errors.withLock { $0[id] != nil } }

    func insert(_ id: UploadID) {
        errors.withLock { errors in
            if errors[id] == nil { errors[id] = .some(nil) }
        }
    }

    func remove(_ id: UploadID) { errors.withLock { _ = $0.removeValue(forKey: id) } }

    /// Why the names could not be made durable. To synchronize them again would prove nothing in this life.
    func synchronizationError(_ id: UploadID) -> StoreError? { errors.withLock { $0[id] ?? nil } }

    func setSynchronizationError(_ id: UploadID, _ error: StoreError) { errors.withLock { $0[id] = error } }
}
