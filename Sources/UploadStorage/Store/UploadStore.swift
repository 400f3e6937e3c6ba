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
    /// The pauses before a failed count is repeated, in nanoseconds. During a pause the log of the catalog grows.
    private static let countPauses: [Int64] = [100_000_000, 1_000_000_000, 5_000_000_000, 20_000_000_000]
    private let verification = Monitor<WorkerThread?>(nil)
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

    /// If the last process did not stop properly, counts the totals and checks the catalog in the background.
    private func startVerification(shouldCount: Bool) throws(StoreError) {
        guard shouldCount || catalog.isVerificationNeeded else { return }
        let thread = try startingThreads { () throws(Errno) in
            try WorkerThread(name: "verify", shouldYield: true) { [self] in verify(shouldCount: shouldCount) }
        }
        verification.withLock { $0 = thread }
    }

    private func verify(shouldCount: Bool) {
        do throws(StoreError) {
            if shouldCount {
                do throws(StoreError) { try count() } catch {
                    ledger.fail(error)
                    report(error)
                }
            }
            try catalog.verify()
        } catch {
            report(error)
        }
    }

    /// Counts the totals. Failures other than damage, such as an error of the disk or missing memory, are retried up to
    /// four times.
    private func count() throws(StoreError) {
        var pauses = Self.countPauses[...]
        while true {
            do throws(StoreError) {
                let totals = try catalog.countTotals()
                finished.addCounted(complete: totals.complete, invalid: totals.invalid)
                ledger.addCounted(totals.usage)
                return
            } catch {
                guard !error.isDamage, error != .superseded, let pause = pauses.popFirst() else { throw error }
                if registry.waitForClosing(nanoseconds: pause) { throw .superseded }
            }
        }
    }

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
        guard ledger.isExact, context.newBlobs.isEmpty, context.pathLocks.isEmpty, uploads.allSatisfy(\.isIdle) else {
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

extension UploadStore {
    private static let recoveryPage = 200

    /// Completes the work that was interrupted when the last process ended. Nothing else is necessary before the store
    /// is used.
    func recover() throws(StoreError) {
        var last: UploadID?
        while true {
            let page = try catalog.processing(after: last, limit: Self.recoveryPage)
            guard let next = page.last else { return }
            for id in page { try recover(id) }
            last = next
        }
    }

    private func recover(_ id: UploadID) throws(StoreError) {
        do throws(StoreError) {
            try registry.withUpload(id) { (upload) throws(StoreError) in
                _ = try upload.claim(principal: nil, until: SystemClock.deadline(in: .seconds(60))) { _ in () }
            }
        } catch {
            // If an upload cannot be completed, the store is opened nevertheless: the sweep tries again.
            if error == .heldElsewhere { return }
            if let intent = (try? catalog.row(id))?.intent { context.pathLocks.setUnsettled(intent.name, id) }
        }
    }
}
