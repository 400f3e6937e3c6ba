import SystemCalls

extension OpenUpload {
    /// Registers what is called when the lease of this epoch is taken away; at once if that has happened.
    func onRevocation(_ closure: @escaping @Sendable () -> Void, as epoch: Int64) {
        let isCurrent = monitor.withLock { state in
            if state.epoch == epoch { state.revocation = closure }
            return state.epoch == epoch
        }
        if !isCurrent { closure() }
    }

    /// Ends the lease of this epoch: a target at work counts as interrupted, and what has been received is kept.
    func release(as epoch: Int64) {
        // Whoever gives the lease back knows: nobody has to be told.
        let (isCurrent, isProcessing, wasMarked) = monitor.withLock { state in
            guard state.epoch == epoch else { return (false, false, false) }
            state.revocation = nil
            // Nobody else settles anything while the lease is out.
            if state.isStaging && state.activity == .settling { state.activity = .idle }
            state.dropStaged()
            return (true, state.activity == .processing, state.markedDurably)
        }
        if isCurrent && isProcessing {
            if wasMarked {
                _ = try? complete(with: store.configuration.interruptedResponse, as: epoch)
                // If that failed, the next one who takes the upload over settles it.
                update { if $0.activity == .processing { $0.activity = .idle } }
            } else {
                endProcessing(as: epoch)
            }
        }
        if isCurrent && !isTransient { _ = try? acknowledge(as: epoch) }
        update { state in
            if state.epoch == epoch { _ = state.revoke() }
        }
        if isTransient {
            let blob = monitor.withLock { $0.row?.blob }
            dropBytes()
            if let blob { store.registry.removeNewBlob(blob) }
        }
        store.registry.drop(self)
    }

    private func dropBytes() {
        let row = update { state -> (CatalogRow, Int64)? in
            guard let row = state.row, row.isUnfinished else { return nil }
            defer {
                state.row = nil
                state.blob = nil
                state.reserved = 0
            }
            return (row, state.reserved)
        }
        guard let (row, reserved) = row else { return }
        store.ledger.end(row.upload.principal, releasing: reserved, counts: false)
        store.discard(row.blob)
    }

    /// Called when nobody uses the upload any more: gives back what was reserved in advance.
    func returnSurplus() {
        let surplus = update { state -> (String, Int64)? in
            guard let row = state.row, row.isUnfinished, !isTransient else { return nil }
            // What the catalog has confirmed, and so the next object for this upload begins with.
            let needed = row.reservedBytes
            defer { state.reserved = needed }
            return (row.upload.principal, state.reserved - needed)
        }
        if let (principal, bytes) = surplus, bytes != 0 {
            store.ledger.end(principal, releasing: bytes, counts: false)
        }
    }

    /// The store closes: whoever still holds a lease has lost it, once the target at work has ended or time is up.
    func supersede(until deadline: Int64) {
        _ = monitor.wait(until: deadline) { state -> Void? in
            state.activity == .processing || state.activity == .settling ? nil : ()
        }
        let revoked = update { $0.revoke() }
        revoked?()
    }
}
