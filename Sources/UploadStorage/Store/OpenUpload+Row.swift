extension OpenUpload {
    /// Whether there is a row. If there is none, see ``UploadMachine/isRecorded``.
    var hasRow: Bool { monitor.withLock { $0.machine.isRecorded } }

    /// Whether this is an upload that is recorded late and has no row yet.
    var isUnrecorded: Bool { !isTransient && !hasRow }

    /// Whether the upload has a row and is known to clients.
    var hasDurableRow: Bool { !isTransient && hasRow }

    /// Commits a change of the row. If there is no row yet, commits the complete row with the change. No other change
    /// of the row may be in progress.
    /// - Parameters:
    ///   - naming: the name that the bytes get together with the change.
    ///   - isMade: whether the row contains the change. A commit that failed may have been made; then the failure is
    ///     ignored.
    /// - Returns: what the change removed or replaced; nil if the commit failed, but the change was made.
    @discardableResult
    func commit(
        _ change: CatalogChange, _ naming: CatalogChange.Naming? = nil,
        confirmedBy isMade: ((CatalogRow?) -> Bool)? = nil
    ) throws(StoreError) -> RemovedRows? {
        guard let row = newRow(with: change) else {
            let change = reporting(change).naming(naming)
            guard let isMade else { return try context.catalog.commit(change) }
            return try context.catalog.commit(change, of: id, confirmedBy: isMade)
        }
        var file: FileRecord?
        if case .complete(let completion) = change { file = completion.file }
        let commit = context.catalog.commit([reporting(.insert(row, file: file)).naming(naming)])[0]
        return try inserted(row, with: change, commit, naming, confirmedBy: isMade)
    }

    /// Called after the commit that creates the row with its first change.
    func inserted(
        _ row: CatalogRow, with change: CatalogChange, _ commit: Result<RemovedRows, StoreError>,
        _ naming: CatalogChange.Naming? = nil, confirmedBy isMade: ((CatalogRow?) -> Bool)?
    ) throws(StoreError) -> RemovedRows? {
        do throws(StoreError) {
            let removed = try commit.get()
            noteRow(row)
            return removed
        } catch {
            update { $0.mayHaveRow = true }
            try context.catalog.awaitOutcomes()
            guard let existing = try context.catalog.row(id) else { throw error }
            // This commit was made, or an earlier commit that seemed to have failed.
            noteRow(existing)
            return existing == row ? nil : try self.commit(change, naming, confirmedBy: isMade)
        }
    }

    /// The first row of the upload, with this change; nil if there is a row.
    func newRow(with change: CatalogChange) -> CatalogRow? {
        monitor.withLock { state in
            guard !state.machine.isRecorded, var row = state.row else { return nil }
            row.length = state.machine.length
            // A publication is decided after all received bytes were synchronized.
            if case .recordIntent = change { row = row.advanced(to: state.machine.received) }
            row.apply(change)
            return row
        }
    }

    /// Creates the row of an upload that is recorded late, with all received bytes, unless a publication is about to
    /// create it.
    func recordNow() throws(StoreError) {
        if isTransient { return }
        let work = monitor.waitForever { state -> Work?? in
            state.machine.acknowledgment == .running ? nil : .some(Work(state.machine.beginRecording(), state))
        }
        if let work { try run(work, duringCallOf: nil) }
    }

    /// The upload as clients may see it: an offset is reported only after there is a row.
    func reportableRecord() throws(StoreError) -> UploadRecord? {
        if isUnrecorded { try recordNow() }
        return monitor.withLock { isHeld($0) ? record($0) : nil }
    }

    private func noteRow(_ row: CatalogRow) {
        update { $0.machine.record(offset: row.offset) }
        // The name of the bytes of a plain upload stays in `newBlobs`, because its row ends with its lease.
        if !isTransient { context.newBlobs.remove(row.blob) }
    }

    // MARK: Release

    /// Called when the upload is no longer in use.
    func endUse() {
        if hasRow && !isTransient {
            releaseSurplus()
            releaseHold()
        } else {
            forget()
        }
    }

    /// Ends a plain upload, or an upload that has no row, and removes its bytes. From now on it does not exist for any
    /// request.
    func forget() {
        let forgotten = update { state -> (row: CatalogRow, epoch: Int64?, reserved: Int64)? in
            guard let row = state.row, let end = state.machine.endWithoutRow(isTransient: isTransient) else {
                return nil
            }
            (state.row, state.blob, state.revocation) = (nil, nil, nil)
            return (row, state.mayHaveRow ? end.epoch : nil, end.reserved)
        }
        guard let (row, epoch, reserved) = forgotten else { return }
        context.ledger.end(row.upload.principal, releasing: reserved, counts: !isTransient)
        do throws(StoreError) {
            if let epoch, try mustRemoveRow() {
                try context.catalog.commit(.delete([context.removal(of: row, epoch: epoch, as: .canceled)]))
            }
            context.discard(row.blob)
        } catch {
            // The row may exist, and may need the bytes. Otherwise the sweep removes them.
            context.newBlobs.remove(row.blob)
        }
    }

    /// Whether the row of an upload must be removed if a commit that failed has created it. A catalog that publishes
    /// files may have completed the upload.
    private func mustRemoveRow() throws(StoreError) -> Bool {
        if context.publishingArea != nil { return true }
        return try context.catalog.row(id)?.isUnfinished ?? false
    }

    /// Ends the lease after a transaction that publishes the file may have been made. The row contains its outcome.
    func endAfterUnknownOutcome() {
        guard hasDurableRow else { return forget() }
        let fence = update { state in
            // The error of the caller reports the end of the lease.
            state.revocation = nil
            drop(&state)
            return state.fence
        }
        context.catalog.release(id, fence: fence)
    }

    /// Releases the bytes that were reserved in advance.
    func releaseSurplus() {
        if isTransient { return }
        let (principal, surplus) = update { ($0.principal, $0.machine.removeSurplus()) }
        if surplus != 0 { context.ledger.end(principal, releasing: surplus, counts: false) }
    }

    /// Waits for the end of the processing, at most until `deadline`, and then ends every lease. An upload that has no
    /// row gets one, because its client may know its URL.
    func supersede(until deadline: Int64) {
        _ = monitor.wait(until: deadline) { state -> Void? in state.machine.isEnding ? nil : () }
        let (_, revocation) = update { state in state.revoking { $0.revoke() } }
        revocation?()
        // If this fails, the upload ends without a row, as after a crash.
        _ = try? recordNow()
    }
}
