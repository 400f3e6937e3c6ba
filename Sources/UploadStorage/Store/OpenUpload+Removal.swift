import SystemCalls

extension OpenUpload {
    /// An upload that is being removed: its row is still there, and nobody else decides about it.
    struct Removal {
        var upload: OpenUpload
        var row: CatalogRow
        var epoch: Int64
        var reserved: Int64
        /// To be called without a lock, before the row is removed.
        var revoked: (@Sendable () -> Void)?
    }

    /// Takes the upload away from everybody, and forgets row and bytes. Nil if the target resource is at work beyond the
    /// deadline, false if `isWanted` says no.
    func remove(
        principal: String?, until deadline: Int64, if isWanted: (UploadRecord) -> Bool = { _ in true }
    ) throws(StoreError) -> Bool? {
        let claimed: Removal?? = try claim(principal: principal, until: deadline) {
            (state) throws(StoreError) -> Removal? in
            guard let row = state.row, let record = record(state), isWanted(record) else { return nil }
            return startRemoval(of: row, &state)
        }
        guard let claimed else { return nil }
        guard let removal = claimed else { return false }
        removal.revoked?()
        monitor.waitForever { state -> Void? in
            if state.acknowledgment == .running { return nil }
            state.acknowledgment = .idle
            return ()
        }
        let removed: RemovedUploads?
        do throws(StoreError) {
            removed = try store.catalog.commit(
                .delete([CatalogChange.Removal(id: id, epoch: removal.epoch)]), of: id
            ) { $0 == nil }
        } catch {
            cancelRemoval()
            throw error
        }
        endRemoval(removal, removed)
        return true
    }

    /// Begins to remove an upload that has expired, without waiting for anybody: others may be held in the same way.
    /// Nil if it is in use in a way that would have to be waited for.
    func beginRemoval(ifExpiredBy now: Int64) throws(StoreError) -> Removal? {
        enum Step {
            case load
            case claimed(Removal)
            case busy
        }
        let step = update { state -> Step in
            guard state.activity == .idle, state.acknowledgment != .running else { return .busy }
            guard let row = state.row else {
                state.activity = .loading
                return .load
            }
            guard !state.needsSettling, row.isUnfinished, row.expiresAt.map({ $0 <= now }) ?? false else {
                return .busy
            }
            return .claimed(startRemoval(of: row, &state))
        }
        switch step {
        case .busy: return nil
        case .claimed(let removal): return removal
        case .load: break
        }
        do throws(StoreError) {
            // Its bytes need not be opened for that.
            guard let row = try store.catalog.row(id) else { throw .notFound }
            return update { state in
                state.activity = .idle
                guard row.phase == .receiving, row.intent == nil, row.expiresAt.map({ $0 <= now }) ?? false else {
                    return nil
                }
                state.take(row, blob: nil)
                return startRemoval(of: row, &state)
            }
        } catch {
            cancelRemoval()
            throw error
        }
    }

    private func startRemoval(of row: CatalogRow, _ state: inout State) -> Removal {
        state.activity = .settling
        state.dropStaged()
        let revoked = state.revoke()
        return Removal(upload: self, row: row, epoch: state.epoch, reserved: state.reserved, revoked: revoked)
    }

    func cancelRemoval() { update { $0.activity = .idle } }

    /// The row is gone.
    ///
    /// - Parameter removed: what the catalog reported, if it did.
    func endRemoval(_ removal: Removal, _ removed: RemovedUploads? = nil) {
        update { state in
            state.row = nil
            state.blob = nil
            state.received = 0
            state.written = 0
            state.durable = 0
            state.reserved = 0
            state.activity = .idle
        }
        if removal.row.isUnfinished {
            store.ledger.end(removal.row.upload.principal, releasing: removal.reserved, counts: true)
            store.discard(removal.row.blob)
        } else {
            // The sweep may have been faster.
            store.finished.remove(removed ?? removal.row.asRemoved)
        }
    }
}

extension CatalogRow {
    fileprivate var asRemoved: RemovedUploads {
        var removed = RemovedUploads()
        removed.add(phase)
        return removed
    }
}
