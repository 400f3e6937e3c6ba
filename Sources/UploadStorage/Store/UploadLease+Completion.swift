import HTTPSemantics
import ResumableUpload
import SystemCalls

extension UploadLease {
    private static let maxAttempts = 1000

    /// Makes all received bytes durable and begins the processing by the target. From now on a take-over waits.
    ///
    /// - Parameter marksDurably: whether the processing is recorded durably, for a target that must not run twice.
    ///   After a crash, or a release without a response, the upload then gets
    ///   ``StoreConfiguration/interruptedResponse``.
    package func beginProcessing(marksDurably: Bool) throws(StoreError) {
        if upload.monitor.withLock({ $0.machine.isStaging }) {
            throw .invalidState("staged bytes are neither committed nor discarded")
        }
        try enter(.processing)
        do throws(StoreError) {
            // A target that can run again needs no row: after a crash, the client uploads the short content again.
            if marksDurably || upload.hasRow { _ = try acknowledge() }
            if marksDurably { try markProcessing() }
        } catch {
            upload.update { $0.machine.processingFailed(as: epoch) }
            throw error
        }
    }

    /// Records durably that the target must not run again, because it may have an effect from now on. Call it only after
    /// ``beginProcessing(marksDurably:)``. It does nothing for an upload without a row.
    package func markProcessing() throws(StoreError) {
        guard !upload.isTransient else { return }
        do throws(StoreError) { try context.catalog.commit(.markProcessing(upload.id, epoch: epoch)) } catch {
            upload.update { $0.machine.markFailed() }
            throw error
        }
        upload.update { $0.machine.mark() }
    }

    /// Whether it is recorded durably that the target must not run again.
    package var isProcessingRecorded: Bool { upload.monitor.withLock { $0.machine.isProcessingRecorded } }

    /// Revokes ``markProcessing()`` durably: the target can run again.
    package func unmarkProcessing() throws(StoreError) {
        guard upload.update({ $0.machine.unmark(as: epoch) }) else { return }
        _ = try acknowledge()
    }

    /// Ends the processing without a final response; the upload can receive content again.
    ///
    /// If another request takes the upload over from now on, the closure of ``onRevocation(_:)`` is not called, so that
    /// the caller can still respond. It has to release the lease then.
    package func endProcessing() {
        let mustAcknowledge = upload.update { state in
            if state.machine.epoch == epoch { state.revocation = nil }
            return state.machine.endProcessing(as: epoch)
        }
        if mustAcknowledge { _ = try? acknowledge() }
    }

    /// Stores the final response durably and removes the bytes. Can be called before all bytes have arrived.
    package func complete(with response: Response) throws(StoreError) {
        try complete { () throws(StoreError) in try upload.finish(with: response, publishedAs: nil) }
    }

    private func complete<Result>(_ finish: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        let last = upload.monitor.withLock { $0.machine.activity }
        try enter(.settling)
        do throws(StoreError) {
            return try finish()
        } catch {
            // The target resource has run. The caller can try again to store its response.
            upload.update { state in
                // After the end of the lease nothing else would end the processing.
                let isProcessing = last == .processing && state.machine.epoch == epoch
                state.machine.leaveActivity(for: isProcessing ? .processing : .idle)
            }
            throw error
        }
    }

    /// Stores the final response of an upload whose processing may have had an effect that is not known.
    /// - Returns: the response.
    package func completeAsInterrupted() throws(StoreError) -> Response {
        try complete { () throws(StoreError) in try upload.finishAsInterrupted() }
    }

    /// Makes the upload permanently unusable, durably, and removes its bytes.
    package func invalidate(reason: String) throws(StoreError) {
        try enter(.settling)
        do throws(StoreError) {
            try upload.invalidate(because: reason)
        } catch {
            upload.update { $0.machine.leaveActivity() }
            throw error
        }
    }

    /// Waits until no other thread completes or removes the upload, and no acknowledgment runs.
    private func enter(_ activity: UploadMachine.Activity) throws(StoreError) {
        try awaitMachine { (machine) throws(StoreError) in try machine.enter(activity, as: epoch) }
    }

    /// Waits until `begin` returns true.
    private func awaitMachine(_ begin: (inout UploadMachine) throws(StoreError) -> Bool) throws(StoreError) {
        let outcome = upload.monitor.waitForever { state -> Result<Void, StoreError>? in
            do throws(StoreError) {
                state.waitingLease = try begin(&state.machine) ? nil : epoch
                return state.waitingLease == nil ? .success(()) : nil
            } catch { return .failure(state.error(of: epoch, error)) }
        }
        // Wakes waiting requests: a claim that must not wait for the target resource can return now.
        upload.monitor.notifyAll()
        try outcome.get()
    }

    /// Gives the complete bytes a name in a directory of the application that processes them. The bytes and the name are
    /// durable on return, and nothing can write to the bytes any more. The caller must remove the name.
    /// - Parameter directory: one of ``StoreConfiguration/handoverDirectories``.
    package func share(in directory: String) throws(StoreError) -> SharedFile {
        let area = try context.sharingArea
        try truncateToReceived()
        let (blob, row) = upload.monitor.withLock { ($0.blob, $0.row) }
        guard let blob, let row else { throw .superseded }
        try area.endWriting(blob)
        try upload.synchronize(blob, including: .attributes, duringCallOf: epoch)
        return try area.share(row.blob, in: directory, durably: context.shouldSynchronize)
    }

    // MARK: Publication

    /// Publishes the bytes as a file and stores the final response. If the condition returns a response, stores this
    /// response and publishes nothing. Once the intent is durable, the publication is always completed or refused, also
    /// after a crash.
    ///
    /// After `targetIsDirectory`, `parentIsFile` and `noFreeName` the upload is still in processing, and the caller
    /// must complete or end it. After `io`, the lease has ended if the publication was decided; the next take-over
    /// completes the publication.
    package func publish(_ publication: Publication) throws(StoreError) -> Response {
        var publication = publication
        publication.refused = try publication.refused.saved()
        let isProcessing = upload.monitor.withLock { state in
            state.machine.epoch == epoch && state.machine.activity == .processing
        }
        if !isProcessing { try beginProcessing(marksDurably: false) }
        try awaitMachine { (machine) throws(StoreError) in try machine.beginPublishing(as: epoch) }
        defer { upload.update { $0.machine.endPublishing() } }
        if upload.hasRow { _ = try acknowledge() }
        try truncateToReceived()
        do throws(StoreError) {
            return try publishUnderSomeName(publication)
        } catch {
            // The error reports the end of the lease, so that no revocation is sent.
            upload.update { state in
                if state.machine.isDecided { state.revocation = nil }
                state.machine.leaveDecided()
            }
            throw error
        }
    }

    /// Opens the file with all received bytes, at offset 0 and only for reading. Nothing writes to the file any more if
    /// the processing has begun.
    /// - Returns: nil if the bytes are not in a local file.
    package func openForReading() throws(StoreError) -> FileDescriptor? {
        try truncateToReceived()
        guard let blob = upload.monitor.withLock({ $0.blob }) else { throw .superseded }
        return try translating("open the content of an upload") { () throws(Errno) in try blob.openForReading() }
    }

    /// Truncates the blob after the received bytes, because the blob becomes the published file.
    private func truncateToReceived() throws(StoreError) {
        let (blob, received, mustSynchronize) = upload.monitor.withLock { state in
            (state.blob, state.machine.received, state.mayHaveRemovedBytes)
        }
        guard let blob else { throw .superseded }
        let isLonger = try translating("truncate the upload") { () throws(Errno) in
            let isLonger = try blob.size() != received
            if isLonger { try blob.truncate(to: received) }
            return isLonger
        }
        if isLonger || mustSynchronize { try upload.synchronize(blob, including: nil, duringCallOf: epoch) }
    }

    /// Synchronizes the content if no acknowledgment has done so. This is necessary for an upload without a row, and
    /// for an empty upload, because recovery needs its file.
    private func synchronizeUnacknowledged(_ blob: any Blob) throws(StoreError) {
        let (received, durable) = upload.monitor.withLock { ($0.machine.received, $0.machine.durable) }
        if received > durable || received == 0 && !upload.isTransient {
            try upload.synchronize(blob, including: .name, duringCallOf: epoch)
        }
    }

    private func publishUnderSomeName(_ publication: Publication) throws(StoreError) -> Response {
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

    /// Publishes under one name. Returns nil if another name has to be tried. The caller must hold the path lock of the
    /// name.
    private func publish(
        _ publication: Publication, under name: PublishedName
    ) throws(StoreError) -> Response? {
        let (blob, row) = upload.monitor.withLock { ($0.blob, $0.row) }
        guard let blob, let row else { throw .superseded }
        let identity = try translating("read the identity of the file") { () throws(Errno) in try blob.identity() }
        for _ in 1...Self.maxAttempts {
            let current: PublishedBlob?
            do throws(StoreError) {
                current = try context.lookUp(name)
            } catch {
                if [.targetIsDirectory, .targetIsSpecial].contains(error) && !publication.replaces { return nil }
                return try refuse(publication, because: error)
            }
            if current != nil && !publication.replaces { return nil }
            if let refusal = try publication.condition(current?.file.attributes)?.saved() {
                try upload.finish(with: refusal, publishedAs: nil)
                return refusal
            }
            let intent = PublicationIntent(
                name: name, replaced: current?.file.attributes.entityTag.opaque, identity: identity,
                fields: publication.fields,
                response: try publication.response(current == nil, name).saved(),
                refused: publication.refused)
            let response: Response?
            if let area = context.publishingArea {
                if current != nil || upload.hasRow {
                    // A failure during a replacement could lose the old file, so a replacement needs a row.
                    try area.requirePublishable(name)
                    try synchronizeUnacknowledged(blob)
                    try decide(intent, publication.validated)
                    response = try place(intent, publication, blob, row, in: area)
                } else {
                    // A failure after a new file was placed loses only that file.
                    response = try placeUnrecorded(intent, publication, blob, row, in: area)
                }
            } else {
                response = try placeAndRecord(intent, publication, blob, row)
            }
            if let response { return response }
        }
        return try refuse(publication, because: .noFreeName)
    }

    /// Publishes the bytes of an upload without a row under a name that no file has, and stores the final response.
    /// Returns nil if another program has just created a file with this name, so that it has to be evaluated again.
    private func placeUnrecorded(
        _ intent: PublicationIntent, _ publication: Publication, _ blob: any Blob, _ row: CatalogRow,
        in area: any PublishingBlobArea
    ) throws(StoreError) -> Response? {
        do throws(StoreError) {
            try area.makeDirectories(for: intent.name, durably: context.shouldSynchronize)
        } catch {
            if error.meansOccupied { return nil }
            try area.requirePublishable(intent.name)
            throw error
        }
        try translating("set the time of a publication") { () throws(Errno) in
            try blob.setModified(context.nextModification())
        }
        let size = upload.monitor.withLock { $0.machine.received }
        let file = NewFile(area: area, blob: blob, blobName: row.blob, name: intent.name, size: size) {
            [upload] (attributes) throws(StoreError) in
            try upload.unrecordedEnding(
                publication.validated(intent.response, attributes).saved(),
                FileRecord(intent, principal: row.upload.principal, attributes: attributes))
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
        case .published(let ending, let commit):
            do throws(StoreError) { try upload.finish(ending, commit) } catch {
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
        _ intent: PublicationIntent, _ publication: Publication, _ blob: any Blob, _ row: CatalogRow,
        in area: any PublishingBlobArea
    ) throws(StoreError) -> Response? {
        switch try context.place(intent, from: row.blob, blob, in: area) {
        case .published(let attributes, let oldNameRemains):
            let response = try publication.validated(intent.response, attributes).saved()
            try upload.finish(
                with: response,
                publishedAs: FileRecord(intent, principal: row.upload.principal, attributes: attributes),
                oldNameRemains: oldNameRemains)
            return response
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
        _ intent: PublicationIntent, _ publication: Publication, _ blob: any Blob, _ row: CatalogRow
    ) throws(StoreError) -> Response? {
        do throws(StoreError) {
            try context.area.makeDirectories(for: intent.name, durably: true)
        } catch {
            if error.meansOccupied { return nil }
            throw error
        }
        try translating("set the time of a publication") { () throws(Errno) in
            try blob.setModified(context.nextModification())
        }
        try upload.synchronize(blob, including: .attributes, duringCallOf: epoch)
        let attributes = try translating("read attributes") { () throws(Errno) in try blob.attributes() }
        let response = try publication.validated(intent.response, attributes).saved()
        // The catalog needs the open blob.
        defer { withExtendedLifetime(blob) {} }
        do throws(StoreError) {
            try upload.finish(
                with: response,
                publishedAs: FileRecord(intent, principal: row.upload.principal, attributes: attributes),
                .file(intent.name, attributes, blob: row.blob, replaced: intent.replaced), oldNameRemains: false)
            return response
        } catch {
            if error.meansOccupied { return nil }
            upload.endAfterUnknownOutcome()
            throw error
        }
    }

    private func decide(
        _ intent: PublicationIntent,
        _ validated: @escaping @Sendable (Response, PublishedFile.Attributes) -> Response
    ) throws(StoreError) {
        let id = upload.id
        try upload.commit(.recordIntent(id, epoch: epoch, intent)) { $0?.intent == intent }
        let last = upload.update { state in
            defer { state.publication = OpenUpload.DecidedPublication(intent: intent, validated: validated) }
            state.machine.decide()
            return state.publication?.intent.name
        }
        if let last { context.pathLocks.clearUnsettled(last, id) }
        context.pathLocks.setUnsettled(intent.name, id)
    }

    /// Keeps the row and the bytes. The next sweep, publication under the name, or start removes them.
    private func keepRowForSweep() {
        let left = upload.update { state -> (row: CatalogRow, surplus: Int64)? in
            guard state.machine.isDecided, let row = state.row else { return nil }
            (state.row, state.blob, state.publication, state.revocation) = (nil, nil, nil, nil)
            let surplus = state.machine.reserved - state.machine.received
            state.machine.forget()
            state.machine.revoke()
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
        guard !upload.isTransient, upload.monitor.withLock({ $0.machine.isDecided }) else {
            try upload.removeRecord()
            throw error
        }
        try upload.finish(with: publication.refused, publishedAs: nil)
        return publication.refused
    }
}
