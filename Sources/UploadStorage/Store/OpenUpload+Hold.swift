import SystemCalls

// If several stores share a catalog, one of them at a time holds an upload: see ``UploadCatalog/acquire(_:until:)``. Safety
// does not depend on these methods, because the catalog rejects changes by a store that is not the holder.
extension OpenUpload {
    /// Reads the row, and makes this store the holder of the upload.
    func acquire(until deadline: Int64) throws(StoreError) -> (row: CatalogRow, fence: Int64)? {
        try context.catalog.acquire(id, until: deadline).map { ($0.row, $0.fence) }
    }

    /// Whether this store is certainly the holder, so that the state in memory is current. True if there is no row that
    /// another store could know.
    func isHeld(_ state: State) -> Bool {
        let machine = state.machine
        guard context.catalog.isShared, !isTransient, machine.isLoaded, machine.isRecorded, machine.isUnfinished else {
            return true
        }
        return context.catalog.holds(id, fence: state.fence)
    }

    /// Ends the current lease, and forgets the row and the bytes, because another store may have changed them. The next
    /// request reads the row again.
    func drop(_ state: inout State) {
        (state.blob, state.publication) = (nil, nil)
        let (_, revocation) = state.revoking { $0.drop() }
        if let revocation {
            // The closure must be called without the lock.
            context.handOver.enqueue(revocation)
        }
    }

    /// Called after the hold has ended without a release.
    func holdWasLost() { update { state in if !isHeld(state) { drop(&state) } } }

    /// Ends the hold at the end of the use.
    func releaseHold() {
        guard context.catalog.isShared else { return }
        let fence = monitor.withLock { state in
            state.machine.isLoaded && state.machine.isUnfinished ? state.fence : nil
        }
        if let fence { context.catalog.release(id, fence: fence) }
    }

    /// Releases the upload because another store wants to hold it. Like the take-over by a request of this store, this
    /// ends the current lease, and the received bytes are made durable. While the target resource processes the upload,
    /// nothing changes: the other store asks again.
    func yield() throws(StoreError) {
        let lease = try claim(principal: nil, until: 0) {
            state -> (Int64, (@Sendable () -> Void)?)? in
            guard state.machine.isUnfinished else { return nil }
            let (mustTruncate, revocation) = state.revoking { $0.takeOver(exclusive: true) }
            if mustTruncate { state.truncateStaged() }
            return (state.machine.epoch, revocation)
        }
        guard case (let epoch, let revocation)?? = lease else { return }
        revocation?()
        // After a failure, the other store begins at the offset in the row.
        _ = try? acknowledge(as: epoch)
        let fence = update { state -> Int64? in
            guard state.machine.epoch == epoch else { return nil }
            drop(&state)
            return state.fence
        }
        // A request that has acquired the upload again meanwhile has another fence.
        if let fence { context.catalog.release(id, fence: fence) }
    }
}
