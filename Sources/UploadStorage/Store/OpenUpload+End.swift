import HTTPSemantics
import ResumableUpload
import SystemCalls

/// The end of an upload with its final response.
struct UploadEnding: Sendable {
    let response: Response
    /// The file that the bytes have become, or become in the same transaction; nil if no file was published.
    let file: FileRecord?
    let expiresAt: Int64
    /// The change that records the end: it completes the row, or records only the file of a plain upload.
    let change: RowChange
}

// These methods end an upload. Each caller has reserved the activity of the machine, so that no other thread completes
// or removes the upload meanwhile.
extension OpenUpload {
    /// Makes the upload permanently unusable, and records that durably.
    func invalidate(because reason: String) throws(StoreError) {
        let (state, expiresAt) = (snapshot, context.expiryOfFinished)
        if !isTransient, let row = state.row {
            try commit(
                .invalidate(
                    CatalogChange.Invalidation(
                        id: id, epoch: state.machine.epoch, reason: reason, expiresAt: expiresAt,
                        upload: row.upload.withoutFields)))
        }
        close(as: .invalid(reason: reason), expiresAt: expiresAt)
    }

    func invalidateLost() throws(StoreError) {
        try invalidate(because: "acknowledged bytes were lost")
        context.finished.addLost()
        context.reportLoss(of: id)
    }

    /// Makes the final response durable without publishing a file.
    /// - Parameter naming: the name under which the same transaction retains the bytes. It has no effect for a plain
    ///   upload.
    func finish(with response: Response, _ naming: CatalogChange.Naming? = nil) throws(StoreError) {
        let response = try response.saved()
        guard isTransient else { return try finish(ending(with: response, publishedAs: nil, naming)) }
        try removeRecord()
        close(as: .complete(response), expiresAt: context.expiryOfFinished)
    }

    /// The end of the upload after its bytes were published as the intent states.
    /// - Parameters:
    ///   - validated: the ``Publication/validated`` of the publication.
    ///   - naming: the name that the bytes get in the same transaction; nil if they have it already.
    func ending(
        _ intent: PublicationIntent, _ attributes: PublishedFile.Attributes, _ validated: Validation,
        _ naming: CatalogChange.Naming? = nil
    ) throws(StoreError) -> UploadEnding {
        let file = FileRecord(intent, principal: snapshot.principal, attributes: attributes)
        return try ending(with: validated(intent.response, attributes).saved(), publishedAs: file, naming)
    }

    private func ending(
        with response: Response, publishedAs file: FileRecord?, _ naming: CatalogChange.Naming?
    ) throws(StoreError) -> UploadEnding {
        let (state, expiresAt) = (snapshot, context.expiryOfFinished)
        guard let row = state.row else { throw .notFound }
        let (epoch, received) = (state.machine.epoch, state.machine.received)
        let change: CatalogChange
        if isTransient, let file {
            // It has a row if it replaces a file.
            let removal = CatalogChange.Removal(id: id, epoch: epoch)
            change = .recordFile(file, ending: state.machine.isRecorded ? removal : nil)
        } else {
            change = .complete(
                CatalogChange.Completion(
                    id: id, epoch: epoch, offset: received, response: response, expiresAt: expiresAt,
                    file: file, upload: row.upload.withoutFields))
        }
        return UploadEnding(
            response: response, file: file, expiresAt: expiresAt,
            change: rowChange(change, naming, response: response, in: state))
    }

    /// Makes the end durable.
    /// - Parameter hasOldName: whether the blob area may still have a file with the name of the blob. It is then removed.
    func finish(_ ending: UploadEnding, hasOldName: Bool = true) throws(StoreError) {
        try finish(ending, context.catalog.commit([ending.change.combined])[0], hasOldName: hasOldName)
    }

    /// Called after the commit of the end.
    func finish(
        _ ending: UploadEnding, _ result: Result<RemovedRows, StoreError>, hasOldName: Bool
    ) throws(StoreError) {
        do throws(StoreError) {
            let removed = try evaluate(result, of: ending.change)
            if let file = ending.file { context.ledger.addPublished(file, replacing: removed) }
        } catch {
            // If the new file of a plain upload has its name already, the upload succeeds without this record: the file is
            // then only missing in the usage of its principal. If events are recorded, it fails, because a success without
            // an event must not exist.
            guard case .recordFile(_, ending: nil) = ending.change.change, ending.change.naming == nil,
                !context.configuration.shouldRecordEvents
            else { throw error }
        }
        close(as: .complete(ending.response), ending.file, expiresAt: ending.expiresAt, hasOldName: hasOldName)
    }

    /// Records the end of an upload in memory, after it is durable.
    private func close(
        as phase: UploadRecord.Phase, _ file: FileRecord? = nil, expiresAt: Int64, hasOldName: Bool = true
    ) {
        if let file { context.fileRecords.remove(file.name) }
        let (row, reserved, fence) = endDecision { state in
            state.row?.phase = phase
            state.row?.expiresAt = expiresAt
            if let upload = state.row?.upload { state.row?.upload = upload.withoutFields }
            return (state.row, state.machine.finish(as: phase), state.machine.fence)
        }
        // If the response to the transaction was lost, the catalog still regards this store as the holder.
        context.catalog.release(id, fence: fence)
        guard let row else { return }
        if !isTransient { context.finished.add(phase) }
        context.ledger.end(row.upload.principal, releasing: reserved, counts: !isTransient)
        // After a publication, this name belongs to the replaced file, is a second name of the new file, or is free.
        if hasOldName { context.discard(row.blob) } else { context.newBlobs.remove(row.blob) }
    }

    /// Removes the row of a plain upload, if it has one. After that, recovery and the sweep have nothing to do for the
    /// upload.
    func removeRecord() throws(StoreError) {
        let machine = machine
        guard isTransient, machine.isRecorded else { return }
        try context.catalog.commit(.delete([CatalogChange.Removal(id: id, epoch: machine.epoch)]), of: id)
        endDecision { $0.machine.clearRecord() }
    }

    /// Changes the state with `body`. The publication that was decided before, if there is one, has ended or is replaced
    /// by another one: its name no longer counts as unsettled.
    @discardableResult
    func endDecision<Result>(_ body: (inout State) -> Result) -> Result {
        let (name, result) = update { ($0.intent?.name, body(&$0)) }
        if let name { context.pathLocks.clearUnsettled(name, id) }
        return result
    }

    // MARK: Interrupted publications

    /// Stores the final response of an upload whose processing was interrupted, and retains its bytes if the
    /// configuration requires this.
    /// - Returns: the response.
    /// - Throws: ``StoreError/stateLost`` if bytes that have to be retained are missing.
    func finishAsInterrupted() throws(StoreError) -> Response {
        let state = snapshot
        guard let known = record(state), let row = state.row,
            let interruption = context.configuration.interruption(known)
        else {
            try finish(with: context.configuration.interruptedResponse)
            return context.configuration.interruptedResponse
        }
        let (key, description) = (id.fingerprint, interruption.description)
        let size = state.machine.length ?? state.machine.received
        var naming: CatalogChange.Naming?
        if let area = context.publishingArea {
            let isRetained = try translating("retain the upload") { () throws(Errno) -> Bool in
                let found = try area.size(of: row.blob)
                guard found ?? 0 >= size else { return false }
                // A crash may have removed an empty blob, because its name was not synchronized.
                if found == nil { _ = try area.create(row.blob) }
                try area.retain(row.blob, as: key, description: description)
                return true
            }
            guard isRetained else { throw .stateLost }
        } else {
            naming = .retained(key: key, description: description, blob: row.blob, size: size)
        }
        try finish(with: interruption.response, naming)
        return interruption.response
    }

    /// Completes an interrupted publication or processing of the upload.
    func settle() throws(StoreError) {
        let state = snapshot
        guard let row = state.row else { throw .notFound }
        guard let intent = state.intent, let area = context.publishingArea else {
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
                try settle(intent, state.validated ?? context.configuration.validated, of: row, in: area)
            }
        }
    }

    private func settle(
        _ intent: PublicationIntent, _ validated: Validation, of row: CatalogRow, in area: any PublishingBlobArea
    ) throws(StoreError) {
        switch try context.place(intent, from: row.blob, nil, in: area) {
        case .published(let attributes, let hasOldName):
            try finish(ending(intent, attributes, validated), hasOldName: hasOldName)
        case .occupied:
            try finish(with: intent.refused)
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
    /// blob is removed last: until the names are durable, the replaced file may still be stored under the name of the
    /// blob.
    func withdraw(
        _ intent: PublicationIntent, _ row: CatalogRow, in area: any PublishingBlobArea
    ) throws(StoreError) {
        context.failedPublications.insert(id)
        if !row.isWithdrawn {
            try context.catalog.commit(.withdraw(id, epoch: machine.epoch), of: id)
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
