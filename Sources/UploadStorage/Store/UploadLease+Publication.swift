import HTTPSemantics
import ResumableUpload
import SystemCalls

// Publication: tries names until one is free, records the decision durably, and gives the bytes their name.
extension UploadLease {
    private static let maxAttempts = 1000

    func publishUnderSomeName(
        _ publication: Publication, _ content: OpenUpload.Content
    ) throws(StoreError) -> Response {
        if context.publishingArea == nil {
            // A shared storage can stall. Nothing else that needs the name waits until these bytes are stored.
            try upload.synchronize(content.blob, including: .attributes, duringCallOf: epoch)
        }
        var name = publication.name
        for attempt in 1...Self.maxAttempts {
            let response = try registry.withName(name, for: upload.id) { () throws(StoreError) in
                do throws(StoreError) { return try publish(publication, under: name) } catch {
                    // The name is still locked: otherwise another upload could use it.
                    if upload.isTransient { keepRowForSweep() }
                    throw error
                }
            }
            if let response { return response }
            guard let next = publication.alternatives(attempt) else { break }
            name = next
        }
        return try refuse(publication, because: .noFreeName)
    }

    /// Synchronizes the content if no acknowledgment has done so. This is necessary for an upload without a row, and
    /// for an empty upload, because the recovery of a decided publication needs the blob.
    private func synchronizeUnacknowledged(_ content: OpenUpload.Content) throws(StoreError) {
        let machine = content.machine
        if machine.received > machine.durable || machine.received == 0 && !upload.isTransient {
            try upload.synchronize(content.blob, including: .name, duringCallOf: epoch)
        }
    }

    /// Publishes under one name. Returns nil if another name has to be tried. The caller must hold the path lock of the
    /// name.
    private func publish(
        _ publication: Publication, under name: PublishedName
    ) throws(StoreError) -> Response? {
        let blob = try upload.content().blob
        let identity = try translating("read the identity of the file") { () throws(Errno) in try blob.identity() }
        for _ in 1...Self.maxAttempts {
            let current: PublishedBlob?
            do throws(StoreError) {
                current = try context.lookUp(name)
            } catch {
                if [.targetIsDirectory, .targetIsSpecial].contains(error) && !publication.canReplace { return nil }
                return try refuse(publication, because: error)
            }
            if current != nil && !publication.canReplace { return nil }
            if let refusal = try publication.condition(current?.file.attributes)?.saved() {
                try upload.finish(with: refusal)
                return refusal
            }
            let intent = PublicationIntent(
                name: name, replaced: current?.file.attributes.entityTag.opaque, identity: identity,
                fields: publication.fields,
                response: try publication.response(current == nil, name).saved(),
                refused: publication.refused)
            if let response = try publish(intent, publication, replaces: current != nil) {
                return response
            }
        }
        // Other programs or servers changed the file during all attempts.
        return try refuse(publication, because: .noFreeName)
    }

    /// Publishes the bytes as the intent states, and stores the final response.
    /// - Parameter replaces: whether a file has the name.
    /// - Returns: nil if the file has just been created or changed, so that the name has to be evaluated again.
    private func publish(
        _ intent: PublicationIntent, _ publication: Publication, replaces: Bool
    ) throws(StoreError) -> Response? {
        let content = try upload.content()
        guard let area = context.publishingArea else { return try placeAndRecord(intent, publication, content) }
        guard replaces || upload.machine.isRecorded else {
            // A failure after a new file was placed loses only that file.
            return try placeUnrecorded(intent, publication, content, in: area)
        }
        // A failure during a replacement could lose the old file, so a replacement needs a row.
        try area.requirePublishable(intent.name)
        try synchronizeUnacknowledged(content)
        try decide(intent, publication.validated)
        return try place(intent, publication, content, in: area)
    }

    /// Publishes the bytes of an upload without a row under a name that no file has, and stores the final response.
    /// Returns nil if another program has just created a file with this name, so that it has to be evaluated again.
    private func placeUnrecorded(
        _ intent: PublicationIntent, _ publication: Publication, _ content: OpenUpload.Content,
        in area: any PublishingBlobArea
    ) throws(StoreError) -> Response? {
        let (blob, row) = (content.blob, content.row)
        do throws(StoreError) {
            try area.makeDirectories(for: intent.name, durably: context.shouldSynchronize)
        } catch {
            if error.isAboutOccupiedName { return nil }
            try area.requirePublishable(intent.name)
            throw error
        }
        try translating("set the time of a publication") { () throws(Errno) in
            try blob.setModified(context.nextModification())
        }
        let file = NewFile(
            area: area, blob: blob, blobName: row.blob, name: intent.name, size: content.machine.received
        ) { [upload] (attributes) throws(StoreError) in
            try upload.ending(intent, attributes, publication.validated)
        }
        switch context.publish(file) {
        case .occupied: return nil
        case .unsynchronized(let error): throw upload.synchronizationFailed(error, duringCallOf: epoch)
        case .unnamed(let error):
            // If this check fails, its error describes the cause better than `error`.
            try area.requirePublishable(intent.name)
            throw error
        case .failed(let error):
            upload.withdrawUnrecorded(intent, row, in: area)
            throw error
        case .published(let ending, let result):
            do throws(StoreError) { try upload.finish(ending, result, hasOldName: false) } catch {
                // The file has its name. Without a row nothing else would withdraw it.
                upload.withdrawUnrecorded(intent, row, in: area)
                throw error
            }
            return ending.response
        }
    }

    /// Moves the bytes to their name and stores the final response. Returns nil if another program has just created or
    /// changed a file with this name, so that it has to be evaluated again.
    private func place(
        _ intent: PublicationIntent, _ publication: Publication, _ content: OpenUpload.Content,
        in area: any PublishingBlobArea
    ) throws(StoreError) -> Response? {
        let row = content.row
        switch try context.place(intent, from: row.blob, content.blob, in: area) {
        case .published(let attributes, let hasOldName):
            let ending = try upload.ending(intent, attributes, publication.validated)
            try upload.finish(ending, hasOldName: hasOldName)
            return ending.response
        case .occupied:
            return nil
        case .lost:
            if upload.isTransient { try upload.removeRecord() } else { try upload.invalidateLost() }
            throw .stateLost
        case .failed(let error):
            try upload.withdraw(intent, row, in: area)
            throw error
        }
    }

    /// Gives the bytes their name and stores the final response, both in one transaction of the catalog. Returns nil if
    /// another file has got the name meanwhile, so that it has to be evaluated again.
    private func placeAndRecord(
        _ intent: PublicationIntent, _ publication: Publication, _ content: OpenUpload.Content
    ) throws(StoreError) -> Response? {
        let (blob, row) = (content.blob, content.row)
        do throws(StoreError) {
            try context.area.makeDirectories(for: intent.name, durably: true)
        } catch {
            if error.isAboutOccupiedName { return nil }
            throw error
        }
        try translating("set the time of a publication") { () throws(Errno) in
            try blob.setModified(context.nextModification())
        }
        try upload.synchronize(blob, including: .attributes, duringCallOf: epoch)
        let attributes = try translating("read attributes") { () throws(Errno) in try blob.attributes() }
        let ending = try upload.ending(
            intent, attributes, publication.validated,
            .file(intent.name, attributes, blob: row.blob, replaced: intent.replaced))
        // A shared storage forgets the pieces that the commit has to record when the blob is deallocated.
        defer { withExtendedLifetime(blob) {} }
        do throws(StoreError) {
            try upload.finish(ending, hasOldName: false)
            return ending.response
        } catch {
            if error.isAboutOccupiedName { return nil }
            upload.endAfterUnknownOutcome(as: epoch)
            throw error
        }
    }

    private func decide(
        _ intent: PublicationIntent, _ validated: @escaping OpenUpload.Validation
    ) throws(StoreError) {
        let id = upload.id
        try upload.commit(.recordIntent(id, epoch: epoch, intent))
        upload.endDecision { state in
            state.machine.decide()
            state.row?.intent = intent
            state.validated = validated
        }
        context.pathLocks.setUnsettled(intent.name, id)
    }

    /// Keeps the row and the bytes of a plain upload whose publication was decided. The next sweep, publication under the
    /// name, or start removes them. Does nothing if no publication was decided.
    private func keepRowForSweep() {
        let left = upload.update { state -> (row: CatalogRow, surplus: Int64)? in
            guard let row = state.row, let surplus = state.machine.leaveRow() else { return nil }
            state.row = nil
            return (row, surplus)
        }
        guard let (row, surplus) = left else { return }
        // From now on the plain upload is counted as an upload, and its row protects the bytes.
        context.ledger.keep(row.upload.principal, releasing: surplus)
        registry.remove(upload)
        context.newBlobs.remove(row.blob)
    }

    /// Ends a publication that is not possible. Throws `error` for a plain upload, or if the publication was not
    /// decided yet; otherwise stores and returns `publication.refused` as the final response.
    private func refuse(_ publication: Publication, because error: StoreError) throws(StoreError) -> Response {
        guard !upload.isTransient, upload.machine.isDecided else {
            try upload.removeRecord()
            throw error
        }
        try upload.finish(with: publication.refused)
        return publication.refused
    }
}
