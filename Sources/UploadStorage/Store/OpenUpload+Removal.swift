import SystemCalls

extension OpenUpload {
    /// The removal of an upload's row. Until it ends, the row exists, and no other thread completes or removes the upload.
    struct Removal {
        var row: CatalogRow
        var epoch: Int64
        /// The event that reports the removal; `nil`: it is not reported.
        var kind: UploadEvent.Kind?
    }

    /// Ends every lease, and removes row and bytes. Returns nil if the target resource still processes the upload at
    /// the deadline, and false if the upload is gone or `isWanted` returns false.
    func remove(
        principal: String?, until deadline: Int64, as kind: UploadEvent.Kind?,
        if isWanted: (UploadRecord) -> Bool = { _ in true }
    ) throws(StoreError) -> Bool? {
        let claimed: Removal?? = try claim(principal: principal, until: deadline) {
            (state) throws(StoreError) -> Removal? in
            guard let row = state.row, let record = record(state), isWanted(record) else { return nil }
            return beginRemoval(of: row, as: kind, &state)
        }
        guard let claimed else { return nil }
        guard let removal = claimed else { return false }
        monitor.waitForever { state -> Void? in state.machine.continueRemoval() == .wait ? nil : () }
        let removed = try prepare { () throws(StoreError) in
            try context.catalog.commit(.delete([context.rowRemoval(for: removal)]), of: id)
        }
        endRemoval(removal, removed)
        return true
    }

    /// Begins to remove an upload that has expired. This method never waits, because the caller may be removing other
    /// uploads at the same time. Returns nil if the upload has not expired, or if this method would have to wait.
    func beginRemoval(ifExpiredBy now: Int64) throws(StoreError) -> Removal? {
        let (expiry, removal) = update { state -> (UploadMachine.Expiry, Removal?) in
            let expiry = state.machine.beginExpiry(of: state.row?.expiresAt, at: now)
            guard expiry == .removable, let row = state.row else { return (expiry, nil) }
            return (expiry, beginRemoval(of: row, as: .expired, &state))
        }
        guard expiry == .load else { return removal }
        return try prepare { () throws(StoreError) in
            // The bytes need not be opened for the removal.
            guard let held = try context.catalog.acquire(id, until: 0) else { throw .notFound }
            return update { state in
                guard state.machine.loadExpired(held.row, fence: held.fence, at: now) == .removable else { return nil }
                set(held.row, nil, &state)
                return beginRemoval(of: held.row, as: .expired, &state)
            }
        }
    }

    private func beginRemoval(of row: CatalogRow, as kind: UploadEvent.Kind?, _ state: inout State) -> Removal {
        state.machine.beginRemoval()
        return Removal(row: row, epoch: state.machine.epoch, kind: kind)
    }

    /// Ends a removal after the row was removed.
    ///
    /// - Parameter removed: the result of the catalog; nil if it is unknown.
    func endRemoval(_ removal: Removal, _ removed: RemovedRows? = nil) {
        let (reserved, fence) = update { state in
            state.row = nil
            return (state.machine.forget(), state.machine.fence)
        }
        context.catalog.release(id, fence: fence)
        if removal.row.isUnfinished {
            context.ledger.end(removal.row.upload.principal, releasing: reserved, counts: true)
            context.discard(removal.row.blob)
        } else {
            // If the sweep has removed the row already, `removed` is empty.
            var counted = RemovedRows()
            counted.add(removal.row.phase)
            context.finished.remove(removed ?? counted)
        }
    }

    // MARK: Uploads without a row

    /// Ends a plain upload, or an upload that has no row, and removes its bytes. From now on it does not exist for any
    /// request.
    func forget() {
        let (row, end) = update { state in
            let end = state.machine.endWithoutRow(isTransient: isTransient)
            return (end == .refused ? nil : state.row.take(), end)
        }
        guard let row else { return }
        switch end {
        case .refused: return
        case .ended(let reserved), .removeRow(let reserved, _):
            context.ledger.end(row.upload.principal, releasing: reserved, counts: !isTransient)
        }
        if case .removeRow(_, let epoch) = end,
            !context.removeUnreported(Removal(row: row, epoch: epoch, kind: .canceled))
        {
            // The row may exist, and may need the bytes.
            context.newBlobs.remove(row.blob)
        } else {
            context.discard(row.blob)
        }
    }

    /// Ends the lease if it is unknown whether the transaction that publishes the file was committed. The next use of
    /// the upload reads the outcome from the row.
    func endAfterUnknownOutcome(as lease: Int64) {
        guard hasDurableRow else { return forget() }
        let fence = update { state in
            state.machine.drop(duringCallOf: lease)
            return state.machine.fence
        }
        context.catalog.release(id, fence: fence)
    }
}

extension StoreContext {
    /// Removes a row that may exist although the commit that created it was reported as failed. No response has reported
    /// an offset or the end of the upload.
    /// - Returns: false if that fails. With a shared catalog the sweep repeats it, and the catalog rejects the removal if
    ///   the upload was acquired meanwhile.
    @discardableResult
    func removeUnreported(_ removal: OpenUpload.Removal) -> Bool {
        do throws(StoreError) {
            try removeRow(removal)
            return true
        } catch {
            if catalog.isShared { failedRemovals.add(removal) }
            return false
        }
    }

    func removeRow(_ removal: OpenUpload.Removal) throws(StoreError) {
        // If there is no publishing area, the same commit may have completed the upload, and a complete row has to stay.
        if publishingArea == nil, try catalog.row(removal.row.id)?.isUnfinished != true { return }
        try catalog.commit(.delete([rowRemoval(for: removal)]))
    }
}
