import HTTPSemantics
import SystemCalls

extension UploadStore {
    /// Creates an upload.
    ///
    /// - Parameter recordsAtOnce: whether the row is durable on return. If not, the row is created by the first
    ///   acknowledgment, the end of the lease, or the end of the upload, whichever comes first. Before that, a crash, a
    ///   failed publication or a row that cannot be written removes the upload. So pass false only if all content has
    ///   arrived, and the end follows immediately.
    /// - Parameter isReported: whether the event `created` is recorded, which means that the upload has got a URL.
    package func create(
        _ new: NewUpload, recordsAtOnce: Bool = true, isReported: Bool = true
    ) throws(StoreError) -> UploadLease {
        try begin(new, isTransient: false, isRecorded: recordsAtOnce, isReported: isReported)
    }

    /// Creates the bytes of a plain upload, which has no upload resource. They are removed at the end of the lease, unless
    /// they are published.
    package func createTransient(_ new: NewUpload) throws(StoreError) -> UploadLease {
        try begin(new, isTransient: true, isRecorded: false, isReported: false)
    }

    private func begin(
        _ new: NewUpload, isTransient: Bool, isRecorded: Bool, isReported: Bool
    ) throws(StoreError) -> UploadLease {
        if let length = new.length, length < 0 { throw .invalidState("the length must not be negative") }
        let reserved = new.length ?? 0
        // The name of the bytes differs from the id of the upload, which is secret.
        let blob = context.nextBlobName()
        // The name is added before anything is counted, so that no totals are saved if the store is closed during this
        // call. It is also added before the bytes exist, so that the sweep does not remove them.
        try context.newBlobs.add(blob)
        do throws(StoreError) {
            try ledger.begin(new.principal, reserving: reserved, counts: !isTransient)
            do throws(StoreError) {
                try context.requireSharedLimits(
                    of: new.principal, for: reserved, isNew: !isTransient && !isRecorded)
                let spare = try requireSpace(for: reserved)
                let lease = try place(
                    new, blob, isTransient: isTransient, isRecorded: isRecorded, isReported: isReported,
                    reserved: reserved)
                lease.upload.update { $0.pace.spaceChecked(upTo: 0, spare: spare) }
                return lease
            } catch {
                ledger.end(new.principal, releasing: reserved, counts: !isTransient)
                throw error
            }
        } catch {
            context.newBlobs.remove(blob)
            throw error
        }
    }

    /// - Returns: the free bytes in addition to those that ``UploadLease/append(_:completes:)`` keeps free.
    private func requireSpace(for bytes: Int64) throws(StoreError) -> Int64 {
        let space = try translating("read the free space") { () throws(Errno) in try area.space() }
        let kept = configuration.effectiveMinFree(total: space.total)
        if let shortage = context.shortage(free: space.free, kept: kept, announced: bytes) {
            throw .insufficientSpace(shortage)
        }
        return space.free - context.floor(of: space)
    }

    private func place(
        _ new: NewUpload, _ blob: String, isTransient: Bool, isRecorded: Bool, isReported: Bool, reserved: Int64
    ) throws(StoreError) -> UploadLease {
        let row = CatalogRow(
            id: UploadID(), blob: blob, upload: new, createdAt: time,
            expiresAt: new.expiresAt, epoch: 1, offset: 0, length: new.length, phase: .receiving, intent: nil,
            digestStates: [])
        do throws(StoreError) {
            let blob = try translating("create the content file of an upload") { () throws(Errno) in
                try area.create(row.blob)
            }
            if isRecorded {
                try catalog.commit(
                    context.reporting(.insert(row)) { [isReported ? UploadEvent(.created, of: row, at: $0) : nil] })
            }
            let upload = OpenUpload(row.id, context, isTransient: isTransient)
            let epoch = upload.begin(row, blob: blob, reserved: reserved, isRecorded: isRecorded)
            let use = try registry.use(new: upload)
            if isRecorded { context.newBlobs.remove(row.blob) }
            return UploadLease(use, epoch: epoch, record: row.record)
        } catch {
            // The row may exist, because a commit that failed may have been made.
            if isRecorded {
                context.removeUnreported(
                    OpenUpload.Removal(row: row, epoch: row.epoch, kind: isReported ? .canceled : nil))
            }
            // The caller removes the name from `newBlobs` when the upload is not counted any more.
            _ = try? area.remove(row.blob)
            throw error
        }
    }
}
