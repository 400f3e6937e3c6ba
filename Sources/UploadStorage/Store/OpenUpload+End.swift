import HTTPSemantics
import ResumableUpload
import SystemCalls

// These methods end an upload. Each caller has reserved the activity of the machine, so that no other thread completes
// or removes the upload meanwhile.
extension OpenUpload {
    /// Makes the upload permanently unusable, and records that durably.
    func invalidate(because reason: String) throws(StoreError) {
        let row = monitor.withLock { $0.row }
        let expiresAt = context.expiryOfFinished
        if !isTransient, let row {
            try commit(
                .invalidate(
                    CatalogChange.Invalidation(
                        id: id, epoch: epoch, reason: reason, expiresAt: expiresAt, upload: row.upload.withoutFields))
            ) { $0?.phase == .invalid(reason: reason) }
        }
        close(as: .invalid(reason: reason), expiresAt: expiresAt)
    }

    func invalidateLost() throws(StoreError) {
        try invalidate(because: "acknowledged bytes were lost")
        context.finished.addLost()
        context.reportLoss(of: id)
    }

    /// Makes the final response durable. These are the possible parameters:
    ///
    /// | `file` | `naming` | |
    /// |---|---|---|
    /// | nil | nil | No file was published. |
    /// | nil | `retained` | The same transaction retains the bytes of an upload with a row. |
    /// | the file | nil | The bytes have got the name of the file already. |
    /// | the file | `file` | The bytes get the name of the file in the same transaction. |
    ///
    /// - Parameters:
    ///   - naming: the name that the bytes get in the same transaction.
    ///   - hasOldName: whether a file may still have the name of the bytes.
    func finish(
        with response: Response, publishedAs file: FileRecord?, _ naming: CatalogChange.Naming? = nil,
        hasOldName: Bool = true
    ) throws(StoreError) {
        let response = try response.saved()
        let expiresAt = context.expiryOfFinished
        var removed: RemovedRows? = RemovedRows()
        if !isTransient {
            removed = try commit(completion(response, file, expiresAt: expiresAt), naming) {
                $0?.phase == .complete(response)
            }
        } else if let file, let naming {
            removed = try publish(file, naming, response)
        } else if let file {
            let removal = CatalogChange.Removal(id: id, epoch: epoch)
            removed = try context.catalog.commit(
                reporting(.recordFile(file, ending: removal), response), of: id
            ) { $0 == nil }
        } else {
            try removeRecord()
        }
        if let file { context.ledger.addPublished(file, replacing: removed) }
        close(as: .complete(response), file, expiresAt: expiresAt, hasOldName: hasOldName)
    }

    /// Publishes and records the file of a plain upload, which has no row. A commit that failed may have been made; then
    /// the failure is ignored.
    private func publish(
        _ file: FileRecord, _ naming: CatalogChange.Naming, _ response: Response
    ) throws(StoreError) -> RemovedRows? {
        let change = CatalogChange.naming(reporting(.recordFile(file, ending: nil), response), naming)
        do throws(StoreError) { return try context.catalog.commit(change) } catch {
            try context.catalog.awaitOutcomes()
            guard case .file(let name, _, _, _) = naming, let current = try? context.lookUp(name),
                file.describes(current)
            else { throw error }
            return nil
        }
    }

    private func completion(
        _ response: Response, _ file: FileRecord?, expiresAt: Int64
    ) throws(StoreError) -> CatalogChange {
        let (epoch, received, row) = monitor.withLock { ($0.machine.epoch, $0.machine.received, $0.row) }
        guard let row else { throw .notFound }
        return .complete(
            CatalogChange.Completion(
                id: id, epoch: epoch, offset: received, response: response, expiresAt: expiresAt,
                file: file, upload: row.upload.withoutFields))
    }

    /// The end of an upload without a row that has published a file.
    func unrecordedEnding(_ response: Response, _ file: FileRecord) throws(StoreError) -> UploadEnding {
        let expiresAt = context.expiryOfFinished
        if isTransient {
            let change = CatalogChange.recordFile(file, ending: nil)
            return UploadEnding(
                response: response, file: file, change: change, row: nil, firstChange: reporting(change, response),
                expiresAt: expiresAt)
        }
        let change = try completion(response, file, expiresAt: expiresAt)
        let row = newRow(with: change)
        return UploadEnding(
            response: response, file: file, change: change, row: row,
            firstChange: reporting(row.map { .insert($0, file: file) } ?? change), expiresAt: expiresAt)
    }

    /// Called after the commit of the end.
    func finish(_ ending: UploadEnding, _ commit: Result<RemovedRows, StoreError>) throws(StoreError) {
        if let row = ending.row {
            let removed = try inserted(row, with: ending.change, commit) { $0?.phase == .complete(ending.response) }
            context.ledger.addPublished(ending.file, replacing: removed)
        } else {
            do throws(StoreError) {
                context.ledger.addPublished(ending.file, replacing: try commit.get())
            } catch {
                // If the commit for a plain upload failed, the file is published nevertheless, and is only missing in the
                // usage of its principal. But the event of an acknowledged upload must not be missing.
                if context.configuration.shouldRecordEvents { throw error }
            }
        }
        close(
            as: .complete(ending.response), ending.file, expiresAt: ending.expiresAt, hasOldName: false)
    }

    /// Records the end of an upload in memory, after it is durable.
    private func close(
        as phase: UploadRecord.Phase, _ file: FileRecord? = nil, expiresAt: Int64, hasOldName: Bool = true
    ) {
        if let file { context.fileRecords.remove(file.name) }
        let (row, reserved, decidedName, fence) = update { state in
            let decidedName = state.intent?.name
            state.row?.phase = phase
            state.row?.expiresAt = expiresAt
            if let upload = state.row?.upload { state.row?.upload = upload.withoutFields }
            return (state.row, state.machine.finish(as: phase), decidedName, state.fence)
        }
        // If the response to the transaction was lost, the catalog still regards this store as the holder.
        context.catalog.release(id, fence: fence)
        if let decidedName { context.pathLocks.clearUnsettled(decidedName, id) }
        guard let row else { return }
        if !isTransient { context.finished.add(phase) }
        context.ledger.end(row.upload.principal, releasing: reserved, counts: !isTransient)
        // After a publication, this name belongs to the replaced file, is a second name of the new file, or is free.
        if hasOldName { context.discard(row.blob) } else { context.newBlobs.remove(row.blob) }
    }

    /// Removes the row of a plain upload, if it has one. After that, no work is left for the upload.
    func removeRecord() throws(StoreError) {
        guard isTransient, hasRow else { return }
        try context.catalog.commit(.delete([CatalogChange.Removal(id: id, epoch: epoch)]), of: id) { $0 == nil }
        let decidedName = update { state in
            defer { state.machine.clearRecord() }
            return state.intent?.name
        }
        if let decidedName { context.pathLocks.clearUnsettled(decidedName, id) }
    }

    // MARK: Interrupted publications

    /// Stores the final response of an upload whose processing was interrupted, and retains its bytes if the
    /// configuration requires this.
    /// - Returns: the response.
    /// - Throws: ``StoreError/stateLost`` if bytes that have to be retained are missing.
    func finishAsInterrupted() throws(StoreError) -> Response {
        let (known, row, machine) = monitor.withLock { (self.record($0), $0.row, $0.machine) }
        guard let known, let row, let interruption = context.configuration.interruption(known) else {
            try finish(with: context.configuration.interruptedResponse, publishedAs: nil)
            return context.configuration.interruptedResponse
        }
        let (key, description) = (id.fingerprint, interruption.description)
        let size = machine.length ?? machine.received
        var naming: CatalogChange.Naming?
        if let area = context.publishingArea {
            let isRetained = try translating("retain the upload") { () throws(Errno) -> Bool in
                let found = try area.size(of: row.blob)
                guard found ?? 0 >= size else { return false }
                // The name of an empty file need not have become durable.
                if found == nil { _ = try area.create(row.blob) }
                try area.retain(row.blob, as: key, description: description)
                return true
            }
            guard isRetained else { throw .stateLost }
        } else {
            naming = .retained(key: key, description: description, blob: row.blob, size: size)
        }
        try finish(with: interruption.response, publishedAs: nil, naming)
        return interruption.response
    }

    /// Completes an interrupted publication or processing of the upload.
    func settle() throws(StoreError) {
        let (row, intent, validated) = monitor.withLock { ($0.row, $0.intent, $0.validated) }
        guard let row else { throw .notFound }
        guard let intent, let area = context.publishingArea else {
            // The target resource was processing the upload, and must not run again.
            do throws(StoreError) { _ = try finishAsInterrupted() } catch {
                guard error == .stateLost else { throw error }
                try invalidateLost()
            }
            return
        }
        try context.pathLocks.withLock(intent.name) { () throws(StoreError) in
            if context.failedPublications.contains(id) {
                try withdraw(intent, row, in: area)
            } else {
                try settle(intent, validated ?? context.configuration.validated, of: row, in: area)
            }
        }
    }

    private func settle(
        _ intent: PublicationIntent, _ validated: Validation, of row: CatalogRow, in area: any PublishingBlobArea
    ) throws(StoreError) {
        switch try context.place(intent, from: row.blob, nil, in: area) {
        case .published(let attributes, let hasOldName):
            try finish(
                with: validated(intent.response, attributes),
                publishedAs: FileRecord(intent, principal: row.upload.principal, attributes: attributes),
                hasOldName: hasOldName)
        case .occupied:
            try finish(with: intent.refused, publishedAs: nil)
        case .lost:
            try invalidateLost()
        case .failed:
            try withdraw(intent, row, in: area)
        }
    }

    /// Ends an upload whose file could not be made durable. The file is withdrawn, because parts of it may be missing
    /// on the disk.
    ///
    /// The failure is recorded before a name changes, so that a partly withdrawn publication is never completed. The
    /// bytes are removed last: until the names are durable, the name of the bytes may belong to the file that they
    /// replaced.
    func withdraw(
        _ intent: PublicationIntent, _ row: CatalogRow, in area: any PublishingBlobArea
    ) throws(StoreError) {
        context.failedPublications.insert(id)
        if !row.isWithdrawn {
            try context.catalog.commit(.withdraw(id, epoch: epoch), of: id) { $0?.isWithdrawn ?? false }
            update { $0.row?.isWithdrawn = true }
        }
        try context.withdraw(intent, from: row.blob, of: id, in: area)
        if isTransient {
            try removeRecord()
        } else {
            try invalidate(because: "its file could not be made durable")
        }
        context.failedPublications.remove(id)
    }

    /// Ends an upload that has no row and whose publication failed. Withdraws the file if it was placed, because
    /// without a row the final response must not be sent. The file remains if it is unknown whether the row exists.
    func withdrawUnrecorded(_ intent: PublicationIntent, _ row: CatalogRow, in area: any PublishingBlobArea) {
        do throws(StoreError) {
            if try context.catalog.row(id) == nil {
                try context.withdraw(intent, from: row.blob, of: id, in: area)
            }
        } catch {
            // If the row cannot be read, or the file cannot be withdrawn, the file remains, and is only missing in the
            // usage, as after a crash at this point.
        }
        context.failedPublications.remove(id)
        // A download may have found the file before its record.
        context.fileRecords.remove(intent.name.path)
        forget()
    }
}

extension Response {
    /// The response with all its content in memory, as it is saved.
    /// - Throws: `invalidState` if its content cannot be read, or is too long to be saved.
    func saved() throws(StoreError) -> Response {
        do { return try loaded() } catch {
            throw .invalidState("\(error)")
        }
    }
}
