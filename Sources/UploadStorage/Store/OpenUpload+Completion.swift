import ResumableUpload

extension OpenUpload {
    /// Everything is here. From now on a take-over waits; when this returns, everything is durable and the target resource
    /// may begin.
    func beginProcessing(marksDurably: Bool, as epoch: Int64) throws(StoreError) {
        if monitor.withLock({ $0.isStaging }) {
            throw .invalidState("staged bytes are neither committed nor discarded")
        }
        try enter(.processing, as: epoch)
        do throws(StoreError) {
            _ = try acknowledge(as: epoch)
            guard marksDurably, !isTransient else { return }
            try store.catalog.commit(.markProcessing(id, epoch: epoch))
        } catch {
            // The row may say so or not; the next acknowledgment brings it back to receiving.
            update { state in
                state.activity = .idle
                state.lengthIsRecorded = false
            }
            throw error
        }
        update { $0.markedDurably = true }
    }

    /// The target resource did not run.
    func endProcessing(as epoch: Int64) {
        let wasMarked = update { state in
            guard state.epoch == epoch, state.activity == .processing else { return false }
            defer { state.markedDurably = false }
            state.activity = .idle
            if state.markedDurably { state.lengthIsRecorded = false }
            return state.markedDurably
        }
        if wasMarked { _ = try? acknowledge(as: epoch) }
    }

    /// Stores the final response, whether all bytes are here or not, and drops them.
    func complete(with response: FinalResponse, as epoch: Int64) throws(StoreError) {
        let wasProcessing = monitor.withLock { $0.activity == .processing }
        try enter(.settling, as: epoch)
        do throws(StoreError) {
            try finish(with: response, publishedAs: nil)
        } catch {
            // The target resource has run and may try to tell us again.
            update { $0.activity = wasProcessing ? .processing : .idle }
            throw error
        }
    }

    /// The upload will never be usable again.
    func invalidate(reason: String, as epoch: Int64) throws(StoreError) {
        try enter(.settling, as: epoch)
        do throws(StoreError) {
            try invalidate(because: reason)
        } catch {
            update { $0.activity = .idle }
            throw error
        }
    }

    /// The same, as the one who set `activity`.
    func invalidate(because reason: String) throws(StoreError) {
        let (epoch, row) = monitor.withLock { ($0.epoch, $0.row) }
        let expiresAt = store.expiryOfFinished
        if !isTransient, let row {
            try store.catalog.commit(
                .invalidate(
                    CatalogChange.Invalidation(
                        id: id, epoch: epoch, reason: reason, expiresAt: expiresAt, upload: row.upload.withoutFields)),
                of: id
            ) { $0?.phase == .invalid(reason: reason) }
        }
        close(as: .invalid(reason: reason), expiresAt: expiresAt)
    }

    /// Makes the final response durable, as the one who set `activity`.
    ///
    /// - Parameter leavesName: whether something may have the name of the bytes.
    func finish(
        with response: FinalResponse, publishedAs file: FileRecord?, leavesName: Bool = true
    ) throws(StoreError) {
        let (epoch, received, row) = monitor.withLock { ($0.epoch, $0.received, $0.row) }
        guard let row else { throw .notFound }
        let expiresAt = store.expiryOfFinished
        let replaced: FileRecord?
        if let file { replaced = try store.catalog.file(file.name) } else { replaced = nil }
        var isRecorded = true
        if !isTransient {
            try store.catalog.commit(
                .complete(
                    CatalogChange.Completion(
                        id: id, epoch: epoch, offset: received, response: response, expiresAt: expiresAt, file: file,
                        upload: row.upload.withoutFields)),
                of: id
            ) { $0?.phase == .complete(response) }
        } else if let file {
            let ending = monitor.withLock { $0.isRecorded ? CatalogChange.Removal(id: id, epoch: epoch) : nil }
            do throws(StoreError) {
                try store.catalog.commit(.recordFile(file, ending: ending), of: id) { ending != nil && $0 == nil }
            } catch {
                // With a row left the publication is repeated, and may be withdrawn then.
                if ending != nil { throw error }
                // The file is in its place. That it is not counted is no reason to call it a failure.
                isRecorded = false
            }
        } else {
            try removeRecord()
        }
        if isRecorded, let replaced { store.ledger.addPublished(-replaced.size, for: replaced.principal) }
        if isRecorded, let file { store.ledger.addPublished(file.size, for: file.principal) }
        close(as: .complete(response), expiresAt: expiresAt, leavesName: leavesName)
    }

    /// The end of an upload in memory, once it is durable.
    private func close(as phase: UploadRecord.Phase, expiresAt: Int64, leavesName: Bool = true) {
        let (row, reserved, decided) = update { state in
            let reserved = state.reserved
            let decided = state.unsettled?.intent.name
            state.row?.phase = phase
            state.row?.expiresAt = expiresAt
            if let upload = state.row?.upload { state.row?.upload = upload.withoutFields }
            state.row?.intent = nil
            state.dropStaged()
            if case .complete = phase { state.durable = state.received }
            state.row?.offset = state.durable
            state.blob = nil
            state.reserved = 0
            state.unsettled = nil
            state.markedDurably = false
            state.lengthIsRecorded = true
            // Its answer is on its way, and nothing can be written any more: there is nobody to stop.
            state.revocation = nil
            state.activity = .idle
            return (state.row, reserved, decided)
        }
        if let decided { store.pathLocks.clearUnsettled(decided, id) }
        guard let row else { return }
        if !isTransient { store.finished.add(phase) }
        store.ledger.end(row.upload.principal, releasing: reserved, counts: !isTransient)
        // After a publication this is the name of the replaced file, a second one of the new file, or free.
        if leavesName { store.discard(row.blob) }
    }
}
