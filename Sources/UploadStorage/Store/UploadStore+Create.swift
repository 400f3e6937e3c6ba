import HTTPSemantics
import SystemCalls

extension UploadStore {
    /// Creates an upload. Its row is durable on return.
    package func create(_ new: NewUpload) throws(StoreError) -> UploadLease {
        try begin(new, isTransient: false)
    }

    /// Creates bytes without an upload resource. They are removed at the end of the lease, unless they are published.
    package func createTransient(
        principal: String, length: Int64?, digests: Set<DigestAlgorithm> = []
    ) throws(StoreError) -> UploadLease {
        try begin(
            NewUpload(principal: principal, method: .put, target: "", length: length, digests: digests),
            isTransient: true)
    }

    private func begin(_ new: NewUpload, isTransient: Bool) throws(StoreError) -> UploadLease {
        if let length = new.length, length < 0 { throw .invalidState("the length must not be negative") }
        let reserved = new.length ?? 0
        // The name of the bytes differs from the id of the upload, which is secret.
        let blob = UploadID().text
        // The bytes are announced before anything is counted, so that no totals are saved if the store is closed during
        // this call. They are also announced before they exist, so that the sweep does not remove them.
        try registry.addNewBlob(blob)
        do throws(StoreError) {
            try ledger.begin(new.principal, reserving: reserved, counts: !isTransient)
            do throws(StoreError) {
                try requireSpace(for: reserved)
                return try place(new, blob, isTransient: isTransient, reserved: reserved)
            } catch {
                ledger.end(new.principal, releasing: reserved, counts: !isTransient)
                throw error
            }
        } catch {
            registry.removeNewBlob(blob)
            throw error
        }
    }

    private func requireSpace(for bytes: Int64) throws(StoreError) {
        let space = try translating("read the free space") { () throws(Errno) in try area.space() }
        let kept = configuration.effectiveMinFree(total: space.total)
        if let shortage = context.shortage(free: space.free, kept: kept, announced: bytes) {
            throw .insufficientSpace(shortage)
        }
    }

    private func place(
        _ new: NewUpload, _ blob: String, isTransient: Bool, reserved: Int64
    ) throws(StoreError) -> UploadLease {
        let row = CatalogRow(
            id: UploadID(), blob: blob, upload: new, createdAt: time,
            expiresAt: new.expiresAt, epoch: 1, offset: 0, length: new.length, phase: .receiving, intent: nil,
            digestStates: [])
        do throws(StoreError) {
            let blob = try translating("create the bytes of an upload") { () throws(Errno) in
                try area.create(row.blob)
            }
            if !isTransient { try catalog.commit(.insert(row)) }
            let upload = OpenUpload(row.id, context, isTransient: isTransient)
            let epoch = upload.begin(row, blob: blob, reserved: reserved)
            let use = try registry.use(new: upload)
            if !isTransient { registry.removeNewBlob(row.blob) }
            return UploadLease(use, epoch: epoch, record: row.record)
        } catch {
            // The row may exist, because a commit that failed may have been made.
            if !isTransient {
                _ = try? catalog.commit(.delete([CatalogChange.Removal(id: row.id, epoch: row.epoch)]))
            }
            context.discard(row.blob)
            throw error
        }
    }
}
