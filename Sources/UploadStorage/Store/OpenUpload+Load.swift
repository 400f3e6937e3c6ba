import SystemCalls

extension OpenUpload {
    /// Fills in a new upload, whose row, if it has one, is durable.
    func begin(_ row: CatalogRow, blob: any Blob, reserved: Int64) -> Int64 {
        update { state in
            state.row = row
            state.blob = blob
            state.epoch = row.epoch
            state.length = row.length
            state.reserved = reserved
            state.digests = DigestTracker(row.upload.digests)
            return state.epoch
        }
    }

    /// Reads the row and opens the bytes, as the caller who set `activity` to loading.
    ///
    /// Bytes beyond the recorded offset were never acknowledged and are dropped. Bytes missing below it make the upload
    /// invalid: its offset is never taken back.
    func load() throws(StoreError) {
        do throws(StoreError) {
            guard var row = try store.catalog.row(id) else { throw .notFound }
            var blob: (any Blob)?
            if row.phase == .receiving {
                blob = try openBlob(of: row)
                if blob == nil { try invalidateLost(&row) }
            }
            update { state in
                state.take(row, blob: blob)
                let hasFailed = row.isWithdrawn || store.failedPublications.contains(id)
                state.unsettled = row.intent.map {
                    Unsettled(intent: $0, validated: store.configuration.validated, hasFailed: hasFailed)
                }
                state.activity = .idle
            }
        } catch {
            update { $0.activity = .idle }
            throw error
        }
    }

    static let lossReason = "acknowledged bytes were lost"

    private func invalidateLost(_ row: inout CatalogRow) throws(StoreError) {
        let reason = Self.lossReason
        let expiresAt = store.expiryOfFinished
        let remaining = row.upload.withoutFields
        try store.catalog.commit(
            .invalidate(
                CatalogChange.Invalidation(
                    id: id, epoch: row.epoch, reason: reason, expiresAt: expiresAt, upload: remaining)))
        let reserved = monitor.withLock { max($0.reserved, row.reservedBytes) }
        store.ledger.end(row.upload.principal, releasing: reserved, counts: true)
        row.phase = .invalid(reason: reason)
        row.upload = remaining
        store.finished.add(row.phase)
        store.finished.addLost()
        store.tellLoss(of: id)
        row.expiresAt = expiresAt
        store.discard(row.blob)
    }

    /// Nil where bytes are missing.
    private func openBlob(of row: CatalogRow) throws(StoreError) -> (any Blob)? {
        try translating("open the bytes of an upload") { () throws(Errno) -> (any Blob)? in
            if row.offset == 0 {
                // Nothing was acknowledged, perhaps because bytes or name could not be made durable: both are made anew.
                try store.area.remove(row.blob)
                return try store.area.create(row.blob)
            }
            do throws(Errno) {
                let blob = try store.area.open(row.blob)
                let size = try blob.size()
                if size < row.offset { return nil }
                if size > row.offset { try blob.truncate(to: row.offset) }
                return blob
            } catch {
                guard error == .noSuchFile else { throw error }
                return nil
            }
        }
    }
}

extension OpenUpload.State {
    mutating func take(_ row: CatalogRow, blob: (any Blob)?) {
        self.row = row
        self.blob = blob
        epoch = max(epoch, row.epoch) + 1
        received = row.offset
        written = row.offset
        isStaging = false
        stagedDigests = nil
        durable = row.offset
        length = row.length
        lengthIsRecorded = true
        writeBackStarted = row.offset
        writeBackAwaited = row.offset
        reserved = row.isUnfinished ? max(reserved, row.reservedBytes) : 0
        digests = DigestTracker(row.upload.digests, states: row.digestStates, limit: row.offset)
    }
}
