import SystemCalls

// The operations on uploads that requests need.
extension UploadStore {
    // MARK: Creation

    /// Creates an upload.
    ///
    /// - Parameter shouldRecordAtOnce: whether the row is durable on return. If not, the row is created by the first
    ///   acknowledgment, the end of the lease, or the end of the upload, whichever comes first. Before that, a crash, a
    ///   failed publication or a row that cannot be written removes the upload. So pass false only if all content has
    ///   arrived, and the end follows immediately.
    /// - Parameter isReported: whether the event `created` is recorded, which means that the upload has got a URL.
    package func create(
        _ new: NewUpload, shouldRecordAtOnce: Bool = true, isReported: Bool = true
    ) throws(StoreError) -> UploadLease {
        try begin(new, isTransient: false, isRecorded: shouldRecordAtOnce, isReported: isReported)
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
                return try place(
                    new, blob, isTransient: isTransient, isRecorded: isRecorded, isReported: isReported,
                    reserved: reserved, spare: requireSpace(for: reserved))
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
        _ new: NewUpload, _ blob: String, isTransient: Bool, isRecorded: Bool, isReported: Bool, reserved: Int64,
        spare: Int64
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
            let upload = OpenUpload(
                new: row, blob: blob, context, isTransient: isTransient, isRecorded: isRecorded, reserved: reserved,
                spare: spare)
            let use = try registry.use(new: upload)
            if isRecorded { context.newBlobs.remove(row.blob) }
            return UploadLease(use, epoch: row.epoch, record: row.record)
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

    // MARK: Existing uploads

    /// Returns the state of an upload with its durable offset. Its lease does not end.
    /// - Parameter shouldConfirmHold: whether to verify that no other store has acquired the upload. Not necessary if only
    ///   the target or the principal is needed, which never change.
    package func record(_ id: UploadID, shouldConfirmHold: Bool = true) throws(StoreError) -> UploadRecord {
        if let upload = registry.current(id),
            let record = try upload.reportableRecord(shouldConfirmHold: shouldConfirmHold)
        {
            // The row of an expired upload may have been removed already.
            if let expiryTime, record.isNoLongerKept(at: expiryTime) { throw .notFound }
            return record
        }
        guard let row = try context.catalog.row(id) else { throw .notFound }
        return row.record
    }

    /// Takes over an upload. On return the previous lease has ended, and bytes that were written with it count as
    /// received.
    ///
    /// Requests for the same upload are served in the order in which they came.
    ///
    /// - Parameters:
    ///   - wait: the time to wait for a target resource that processes the upload. The processing is never interrupted.
    ///   - exclusive: whether later requests wait for the end of this lease, or for the call of
    ///     ``UploadLease/onRevocation(_:)``, instead of taking the upload over. Such a lease must end without waiting
    ///     for a client.
    package func takeOver(
        _ id: UploadID, principal: String, waitForProcessing wait: Duration, exclusive: Bool = false
    ) throws(StoreError) -> TakeOver {
        enum Claim {
            case lease(epoch: Int64, UploadRecord)
            case complete(UploadRecord)
        }
        let use = try registry.use(id)
        let upload = use.upload
        let expiryTime = expiryTime
        let knownFence = catalog.isShared ? upload.heldFence : nil
        let claim = try upload.claim(principal: principal, until: SystemClock.deadline(in: wait)) {
            (state) throws(StoreError) -> Claim in
            guard let record = upload.record(state) else { throw .notFound }
            if let expiresAt = record.expiresAt, let expiryTime, expiresAt <= expiryTime {
                throw .gone(reason: "it has expired")
            }
            switch record.phase {
            case .complete: return .complete(record)
            case .invalid(let reason): throw .gone(reason: reason)
            case .receiving, .processing:
                state.machine.takeOver(exclusive: exclusive)
                return .lease(epoch: state.machine.epoch, record)
            }
        }
        switch claim {
        case .lease(let epoch, let record):
            let lease = UploadLease(use, epoch: epoch, record: record)
            // If the row was read by an earlier request, another store may have acquired the upload since then.
            if let knownFence, knownFence == upload.heldFence, try !upload.confirmHold(knownFence) {
                return try takeOver(id, principal: principal, waitForProcessing: wait, exclusive: exclusive)
            }
            return .lease(lease)
        case .complete(let record): return .complete(record)
        case nil:
            let record = try self.record(id)
            if case .complete = record.phase { return .complete(record) }
            return .processing(record)
        }
    }

    /// Removes an upload: first ends the lease, then removes the row, then the bytes. A published file is not removed.
    ///
    /// Fails with ``StoreError/processing`` if a target still processes the upload after
    /// ``StoreConfiguration/processingWait``.
    package func cancel(_ id: UploadID, principal: String, isReported: Bool = true) throws(StoreError) {
        let deadline = SystemClock.deadline(in: configuration.processingWait)
        let removed = try registry.withUpload(id) { (upload) throws(StoreError) in
            try upload.remove(principal: principal, until: deadline, as: isReported ? .canceled : nil)
        }
        if removed == nil { throw .processing }
    }
}

/// The result of a take-over.
package enum TakeOver: Sendable {
    /// A lease with which bytes can be appended at `received`.
    case lease(UploadLease)
    /// The target resource still processes the upload after the waiting time. The processing was not interrupted.
    case processing(UploadRecord)
    /// The upload has its final response.
    case complete(UploadRecord)
}
