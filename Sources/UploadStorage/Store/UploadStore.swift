import HTTPSemantics
import ResumableUpload
import SystemCalls

/// Uploads and published files: durable state, bytes, and the right to write to them. Safe to use from any thread.
///
/// The store guarantees that an acknowledged offset never decreases, and that a publication is made once, completely or
/// not at all, even if the process is killed or crashes.
public final class UploadStore: Sendable {
    let context: StoreContext
    let registry: UploadRegistry
    let healthCheck: WorkQueue
    /// The progress of the sweep. The lock is held while a sweep runs.
    let inspection = Monitor(StoreInspection())
    /// The damage because of which the catalog cannot be used any more, and the closure that is called for it.
    let damage = Monitor(CatalogDamage())
    /// Failures of work in the background, for the report of the next sweep.
    let unreported = Monitor<[StoreError]>([])
    let verification = Monitor<WorkerThread?>(nil)
    let healthProbe = Monitor(HealthProbe())

    /// Creates a store that uses a catalog and a blob area. Decided publications are completed, and uploads whose
    /// processing was interrupted get ``StoreConfiguration/interruptedResponse``. The time and the memory for this work
    /// do not depend on the size of the store. If acknowledged bytes of an upload are missing, this is found when the
    /// upload is used, or at the latest by the first sweeps, which also remove bytes that belong to no upload.
    package init(
        catalog: any UploadCatalog, area: any BlobArea, location: String = "the store",
        configuration: StoreConfiguration
    ) throws(StoreError) {
        let context = try StoreContext(
            catalog: catalog, area: area, location: location, configuration: configuration)
        self.context = context
        if !configuration.handoverDirectories.isEmpty {
            try context.sharingArea.prepare(configuration.handoverDirectories, root: location)
        }
        (registry, healthCheck) = try startingThreads { () throws(Errno) in
            (try UploadRegistry(context), try WorkQueue(name: "health", threads: 1))
        }
        if catalog.isShared { releaseRequestedHolds() }
        do throws(StoreError) { try recover() } catch {
            // The sweep completes interrupted work as soon as the database can be reached.
            guard catalog.isShared, case .unavailable = error else { throw error }
        }
        _ = observeClock()
        try startVerification(shouldCount: catalog.savedTotals == nil)
    }

    deinit { close() }

    var catalog: any UploadCatalog { context.catalog }
    var area: any BlobArea { context.area }
    package var configuration: StoreConfiguration { context.configuration }
    var ledger: UsageLedger { context.ledger }
    var finished: FinishedUploads { context.finished }

    /// Reports a failure of work in the background with the next sweep.
    package func report(_ error: StoreError) {
        if error.isDamage {
            reportDamage(error)
        } else if error != .superseded {
            // `superseded` means that the store has been closed, which is not a failure.
            unreported.withLock { $0.append(error) }
        }
    }

    /// Returns the current usage of a principal that this store has counted.
    package func usage(of principal: String) -> Usage { ledger.usage(of: principal) }

    /// Returns the current usage of a principal, or of all principals that have uploads or files; nil until it is
    /// counted, if the count has failed, and if a shared catalog cannot be read. Does not wait for the count.
    /// - Parameter principal: nil for all principals.
    package func currentUsage(of principal: String?) -> [String: Usage]? {
        catalog.isShared ? try? catalog.sharedUsage(of: principal) : ledger.entriesIfCounted
    }

    /// Releases uploads that other stores of the same catalog request, and drops uploads that this store no longer holds.
    private func releaseRequestedHolds() {
        let requested = Monitor<Set<UploadID>>([])
        catalog.onHolds { [weak registry, weak context] id in
            // The other store repeats its request while an earlier one waits for a thread.
            guard let registry, let context, requested.withLock({ $0.insert(id).inserted }) else { return }
            let isQueued = context.holdReleases.enqueue {
                defer { requested.withLock { _ = $0.remove(id) } }
                if let use = try? registry.use(id) { use.upload.releaseOnRequest(use) }
            }
            if !isQueued { requested.withLock { _ = $0.remove(id) } }
        } lost: { [weak registry, weak context] ids in
            guard let registry, let context else { return }
            context.holdReleases.enqueue { for id in ids { registry.current(id)?.holdWasLost() } }
        }
    }

    /// Ends all work. Waits at most ``StoreConfiguration/processingWait`` until running targets have ended; then every
    /// current lease is superseded.
    ///
    /// Release the leases first: this method acknowledges received bytes only for uploads that have no row yet.
    public func close() {
        let deadline = SystemClock.deadline(in: configuration.processingWait)
        let uses = registry.close()
        // Requests may be waiting for the count.
        catalog.stopCounting()
        for use in uses { use.upload.supersede(until: deadline) }
        registry.gathering.close()
        context.close()
        healthCheck.close()
        // This waits until a running sweep has ended.
        let totals = inspection.withLock { _ in self.totals(with: uses.map(\.upload)) }
        saveMark(at: configuration.clock())
        catalog.close(saving: totals)
        verification.withLock { $0 }?.join()
        withExtendedLifetime(uses) {}
        area.close()
    }

    /// Returns the totals of all rows; nil if a running operation may still change them.
    private func totals(with uploads: [OpenUpload]) -> CatalogTotals? {
        guard ledger.isExact, context.newBlobs.isEmpty, context.pathLocks.isEmpty, uploads.allSatisfy(\.machine.isIdle)
        else {
            return nil
        }
        for upload in uploads { upload.releaseSurplus() }
        var totals = CatalogTotals()
        totals.usage = ledger.entries
        totals.complete = finished.complete
        totals.invalid = finished.invalid
        return totals
    }
}

// The operations on uploads that requests need.
extension UploadStore {
    // MARK: Creation

    /// Creates an upload.
    ///
    /// - Parameter shouldRecordAtOnce: whether the row is durable on return. If not, the row is created by the first
    ///   acknowledgment, the end of the lease, or the end of the upload, whichever comes first. Before that, a crash, a
    ///   failed publication or a row that cannot be written removes the upload. So pass false only if all content has
    ///   arrived, and the end follows immediately.
    /// - Parameter isReported: whether the event `created` is recorded, which means that the upload has got a URL.
    package func create(
        _ new: NewUpload, shouldRecordAtOnce: Bool = true, isReported: Bool = true
    ) throws(StoreError) -> UploadLease {
        try begin(new, isTransient: false, isRecorded: shouldRecordAtOnce, isReported: isReported)
    }

    /// Creates the bytes of a plain upload, which has no upload resource. They are removed at the end of the lease, unless
    /// they are published.
    package func createTransient(_ new: NewUpload) throws(StoreError) -> UploadLease {
        try begin(new, isTransient: true, isRecorded: false, isReported: false)
    }

    private func begin(
        _ new: NewUpload, isTransient: Bool, isRecorded: Bool, isReported: Bool
    ) throws(StoreError) -> UploadLease {
        if let length = new.length, length < 0 { throw .invalidState("the length must not be negative") }
        let reserved = new.length ?? 0
        // The name of the bytes differs from the id of the upload, which is secret.
        let blob = context.nextBlobName()
        // The name is added before anything is counted, so that no totals are saved if the store is closed during this
        // call. It is also added before the bytes exist, so that the sweep does not remove them.
        try context.newBlobs.add(blob)
        do throws(StoreError) {
            try ledger.begin(new.principal, reserving: reserved, counts: !isTransient)
            do throws(StoreError) {
                try context.requireSharedLimits(
                    of: new.principal, for: reserved, isNew: !isTransient && !isRecorded)
                return try place(
                    new, blob, isTransient: isTransient, isRecorded: isRecorded, isReported: isReported,
                    reserved: reserved, spare: requireSpace(for: reserved))
            } catch {
                ledger.end(new.principal, releasing: reserved, counts: !isTransient)
                throw error
            }
        } catch {
            context.newBlobs.remove(blob)
            throw error
        }
    }

    /// - Returns: the free bytes in addition to those that ``UploadLease/append(_:completes:)`` keeps free.
    private func requireSpace(for bytes: Int64) throws(StoreError) -> Int64 {
        let space = try translating("read the free space") { () throws(Errno) in try area.space() }
        let kept = configuration.effectiveMinFree(total: space.total)
        if let shortage = context.shortage(free: space.free, kept: kept, announced: bytes) {
            throw .insufficientSpace(shortage)
        }
        return space.free - context.floor(of: space)
    }

    private func place(
        _ new: NewUpload, _ blob: String, isTransient: Bool, isRecorded: Bool, isReported: Bool, reserved: Int64,
        spare: Int64
    ) throws(StoreError) -> UploadLease {
        let row = CatalogRow(
            id: UploadID(), blob: blob, upload: new, createdAt: time,
            expiresAt: new.expiresAt, epoch: 1, offset: 0, length: new.length, phase: .receiving, intent: nil,
            digestStates: [])
        do throws(StoreError) {
            let blob = try translating("create the content file of an upload") { () throws(Errno) in
                try area.create(row.blob)
            }
            if isRecorded {
                try catalog.commit(
                    context.reporting(.insert(row)) { [isReported ? UploadEvent(.created, of: row, at: $0) : nil] })
            }
            let upload = OpenUpload(
                new: row, blob: blob, context, isTransient: isTransient, isRecorded: isRecorded, reserved: reserved,
                spare: spare)
            let use = try registry.use(new: upload)
            if isRecorded { context.newBlobs.remove(row.blob) }
            return UploadLease(use, epoch: row.epoch, record: row.record)
        } catch {
            // The row may exist: a commit can have an effect although it reports a failure.
            if isRecorded {
                context.removeUnreported(
                    OpenUpload.Removal(row: row, epoch: row.epoch, kind: isReported ? .canceled : nil))
            }
            // The caller removes the name from `newBlobs` when the upload is not counted any more.
            _ = try? area.remove(row.blob)
            throw error
        }
    }

    // MARK: Existing uploads

    /// Returns the state of an upload with its durable offset. Its lease does not end.
    /// - Parameter shouldConfirmHold: whether to verify that no other store has acquired the upload. Not necessary if only
    ///   the target or the principal is needed, which never change.
    package func record(_ id: UploadID, shouldConfirmHold: Bool = true) throws(StoreError) -> UploadRecord {
        if let upload = registry.current(id),
            let record = try upload.reportableRecord(shouldConfirmHold: shouldConfirmHold)
        {
            // The row of an expired upload may have been removed already.
            if let expiryTime, record.isNoLongerKept(at: expiryTime) { throw .notFound }
            return record
        }
        guard let row = try context.catalog.row(id) else { throw .notFound }
        return row.record
    }

    /// Takes over an upload. On return the previous lease has ended, and bytes that were written with it count as
    /// received.
    ///
    /// Requests for the same upload are served in the order in which they came.
    ///
    /// - Parameters:
    ///   - wait: the time to wait for a target resource that processes the upload. The processing is never interrupted.
    ///   - exclusive: whether later requests wait for the end of this lease, or for the call of
    ///     ``UploadLease/onRevocation(_:)``, instead of taking the upload over. Such a lease must end without waiting
    ///     for a client.
    package func takeOver(
        _ id: UploadID, principal: String, waitForProcessing wait: Duration, exclusive: Bool = false
    ) throws(StoreError) -> TakeOver {
        enum Claim {
            case lease(epoch: Int64, UploadRecord)
            case complete(UploadRecord)
        }
        let use = try registry.use(id)
        let upload = use.upload
        let expiryTime = expiryTime
        let knownFence = catalog.isShared ? upload.heldFence : nil
        let claim = try upload.claim(principal: principal, until: SystemClock.deadline(in: wait)) {
            (state) throws(StoreError) -> Claim in
            guard let record = upload.record(state) else { throw .notFound }
            if let expiresAt = record.expiresAt, let expiryTime, expiresAt <= expiryTime {
                throw .gone(reason: "it has expired")
            }
            switch record.phase {
            case .complete: return .complete(record)
            case .invalid(let reason): throw .gone(reason: reason)
            case .receiving, .processing:
                state.machine.takeOver(exclusive: exclusive)
                return .lease(epoch: state.machine.epoch, record)
            }
        }
        switch claim {
        case .lease(let epoch, let record):
            let lease = UploadLease(use, epoch: epoch, record: record)
            // If the row was read by an earlier request, another store may have acquired the upload since then.
            if let knownFence, knownFence == upload.heldFence, try !upload.confirmHold(knownFence) {
                return try takeOver(id, principal: principal, waitForProcessing: wait, exclusive: exclusive)
            }
            return .lease(lease)
        case .complete(let record): return .complete(record)
        case nil:
            let record = try self.record(id)
            if case .complete = record.phase { return .complete(record) }
            return .processing(record)
        }
    }

    /// Removes an upload: first ends the lease, then removes the row, then the bytes. A published file is not removed.
    ///
    /// Fails with ``StoreError/processing`` if a target still processes the upload after
    /// ``StoreConfiguration/processingWait``.
    package func cancel(_ id: UploadID, principal: String, isReported: Bool = true) throws(StoreError) {
        let deadline = SystemClock.deadline(in: configuration.processingWait)
        let removed = try registry.withUpload(id) { (upload) throws(StoreError) in
            try upload.remove(principal: principal, until: deadline, as: isReported ? .canceled : nil)
        }
        if removed == nil { throw .processing }
    }
}

/// The result of a take-over.
package enum TakeOver: Sendable {
    /// A lease with which bytes can be appended at `received`.
    case lease(UploadLease)
    /// The target resource still processes the upload after the waiting time. The processing was not interrupted.
    case processing(UploadRecord)
    /// The upload has its final response.
    case complete(UploadRecord)
}
