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
        context = try StoreContext(catalog: catalog, area: area, location: location, configuration: configuration)
        if !configuration.handoverDirectories.isEmpty {
            try context.sharingArea.prepare(configuration.handoverDirectories, root: location)
        }
        registry = UploadRegistry(context)
        healthCheck = try startingThreads { () throws(Errno) in try WorkQueue(name: "health", threads: 1) }
        if catalog.isShared { handOverHolds() }
        do throws(StoreError) { try recover() } catch {
            // The sweep completes interrupted work as soon as the database can be reached.
            guard catalog.isShared, case .unavailable = error else { throw error }
        }
        _ = observeClock()
        try startVerification(counts: catalog.savedTotals == nil)
    }

    deinit { close() }

    var catalog: any UploadCatalog { context.catalog }
    var area: any BlobArea { context.area }
    package var configuration: StoreConfiguration { context.configuration }
    var ledger: UsageLedger { context.ledger }
    var finished: FinishedUploads { context.finished }

    /// If the last process did not stop properly, counts the totals and checks the catalog in the background.
    private func startVerification(counts: Bool) throws(StoreError) {
        guard counts || catalog.needsVerification else { return }
        let thread = try startingThreads { () throws(Errno) in
            try WorkerThread(name: "verify", yieldsToOthers: true) { [self] in verify(counts: counts) }
        }
        verification.withLock { $0 = thread }
    }

    private func verify(counts: Bool) {
        do throws(StoreError) {
            if counts {
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

    /// Counts the totals. Failures other than damage, such as an error of the disk or missing memory, are retried.
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
    package func reportMaintenance(_ error: StoreError) { report(error) }

    private func report(_ error: StoreError) {
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

    /// Hands uploads over to other stores of the same catalog, and drops uploads that this store no longer holds.
    private func handOverHolds() {
        let requested = Monitor<Set<UploadID>>([])
        catalog.onHolds { [weak registry, weak context] id in
            // The other store repeats its request while an earlier one waits for a thread.
            guard let registry, let context, requested.withLock({ $0.insert(id).inserted }) else { return }
            let isQueued = context.handOver.enqueue {
                defer { requested.withLock { _ = $0.remove(id) } }
                if let use = try? registry.use(id) { use.upload.handOver(use) }
            }
            if !isQueued { requested.withLock { _ = $0.remove(id) } }
        } lost: { [weak registry, weak context] ids in
            guard let registry, let context else { return }
            context.handOver.enqueue { for id in ids { registry.current(id)?.holdWasLost() } }
        }
    }

    /// Ends all work. Waits at most ``StoreConfiguration/processingWait`` until running targets have ended; then every
    /// current lease is superseded.
    ///
    /// Received bytes are not acknowledged by this method, except those of uploads that have no row yet: release the
    /// leases first.
    public func close() {
        let deadline = SystemClock.deadline(in: configuration.processingWait)
        let uses = registry.close()
        // Requests may be waiting for the count.
        catalog.stopCounting()
        for use in uses { use.upload.supersede(until: deadline) }
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

extension UploadStore {
    /// Opens the store of a data directory, and creates the directory if it is missing. Rows are stored in SQLite,
    /// bytes in files.
    ///
    /// - Parameter root: the path of the data directory. All its parts must be in one file system. Only one store at a
    ///   time can use it.
    /// - Throws: `inUse`, `newerSchema`, `foreignData`, `damaged` or `unusableRoot` if the directory cannot be used, `io` if a
    ///   system call fails, and `cannotStartThread`.
    public static func open(root: String, configuration: StoreConfiguration = StoreConfiguration()) throws(StoreError)
        -> UploadStore
    {
        let directory = try DataDirectory(path: root)
        let catalog = try SQLiteCatalog(
            path: root + "/" + DataDirectory.catalogName, durability: configuration.durability)
        try directory.secure()
        let area = try startingThreads { () throws(Errno) in try FileBlobArea(directory) }
        return try UploadStore(catalog: catalog, area: area, location: root, configuration: configuration)
    }
}

extension UploadStore {
    /// Creates a store in memory, for tests. Its uploads and files are lost when it is closed.
    /// - Parameter configuration: the limits and times.
    /// - Throws: `StoreError` if the system cannot create a thread for the store.
    public static func inMemory(
        configuration: StoreConfiguration = StoreConfiguration()
    ) throws(StoreError) -> UploadStore {
        try UploadStore(catalog: MemoryCatalog(), area: MemoryBlobArea(), configuration: configuration)
    }
}

/// The configuration of a store.
public struct StoreConfiguration: Sendable {
    /// The failures that a reported offset survives.
    public var durability: Durability
    /// The time for which a complete or invalid upload is kept, in complete seconds.
    public var keepCompleted: Duration
    /// Free bytes of the file system below which new uploads are refused; nil: 1 GiB, or a tenth of the disk if that is
    /// less.
    public var minFree: Int64?
    /// The maximum number of unfinished uploads of one principal; nil: no limit.
    public var maxUploadsPerPrincipal: Int?
    /// Maximum size of one principal's unfinished uploads and published files together; nil: no limit.
    public var quotaPerPrincipal: Int64?
    /// The maximum number of bytes of one upload that are only in the page cache. If there are more, the sender is
    /// slowed down to the speed of the disk.
    public var writeBackWindow: Int64
    /// The lifetime of an unfinished upload from its creation, in complete seconds. After a downtime that seems longer, nothing expires for
    /// an hour.
    public var lifetime: Duration
    /// The system's clocks. Ages and expiry are measured with them, see ``UploadStore/time``.
    package var clock: @Sendable () -> ClockReading = { SystemClock.reading() }
    /// Returns the numbers of a storage that several servers share; nil for a data directory.
    package var sharedStatistics: @Sendable () -> SharedStorageStatistics? = { nil }
    /// The final response of an upload that its target was processing when the process ended.
    public var interruptedResponse: Response
    /// Returns the end of an upload whose processing was interrupted; `nil`: the upload gets ``interruptedResponse``.
    package var interruption: @Sendable (UploadRecord) -> Interruption? = { _ in nil }

    /// The end of an upload whose processing was interrupted after it may have had an effect.
    package struct Interruption: Sendable {
        /// The final response.
        package var response: Response
        /// A description with which the bytes of the upload are retained.
        package var description: [UInt8]

        package init(response: Response, description: [UInt8]) {
            self.response = response
            self.description = description
        }
    }
    /// The directories in which applications get complete files by path, each for one application: absolute paths of
    /// directories that exist, in the mount of the data directory. If one of them cannot be used, the store is not opened.
    public var handoverDirectories: [String] = []
    /// Whether changes of uploads are recorded as events, which a program delivers (`EventDelivery` of the product
    /// Gateway).
    public var recordsEvents: Bool
    /// The replacement for ``Publication/validated`` when recovery completes a publication.
    public var validated: @Sendable (Response, PublishedFile.Attributes) -> Response
    /// The time for which the cancellation of an upload waits for a running handler, and for which
    /// ``UploadStore/close()`` waits for all running handlers.
    public var processingWait: Duration

    /// Creates a configuration. Parameters that are omitted have the defaults of `onward serve`.
    public init(
        durability: Durability = .acknowledged,
        keepCompleted: Duration = .seconds(86_400),
        minFree: Int64? = nil,
        maxUploadsPerPrincipal: Int? = nil,
        quotaPerPrincipal: Int64? = nil,
        writeBackWindow: Int64 = 16 << 20,
        lifetime: Duration = .seconds(604_800),
        recordsEvents: Bool = false,
        interruptedResponse: Response = Response(status: 500),
        validated: @escaping @Sendable (Response, PublishedFile.Attributes) -> Response = { response, _ in
            response
        },
        processingWait: Duration = .seconds(5)
    ) {
        self.durability = durability
        self.keepCompleted = keepCompleted
        self.minFree = minFree
        self.maxUploadsPerPrincipal = maxUploadsPerPrincipal
        self.quotaPerPrincipal = quotaPerPrincipal
        self.writeBackWindow = writeBackWindow
        self.lifetime = lifetime
        self.recordsEvents = recordsEvents
        self.interruptedResponse = interruptedResponse
        self.validated = validated
        self.processingWait = processingWait
    }

    /// Whether the text can be one of ``handoverDirectories``: it is absolute, in visible ASCII characters, and has no
    /// empty, `.` and `..` components.
    package static func isHandoverDirectory(_ path: String) -> Bool { HandoverDirectory.isValid(path) }

    func effectiveMinFree(total: Int64) -> Int64 { minFree ?? min(1 << 30, total / 10) }
}

/// The failures that an acknowledged offset survives.
public enum Durability: String, Sendable, Hashable, CaseIterable {
    /// The end of the process and the loss of power: data is synchronized before the offset is recorded.
    case acknowledged
    /// The end of the process alone.
    case relaxed
}
