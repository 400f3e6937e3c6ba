import Synchronization
import SystemCalls

/// The parts of a store that its uploads share. It does not reference the uploads in use.
final class StoreContext: Sendable {
    let catalog: any UploadCatalog
    let area: any BlobArea
    /// The blob area, if it publishes files. Otherwise the catalog does: see ``CatalogChange/Naming``.
    let publishingArea: (any PublishingBlobArea)?
    /// The path of the data directory, for messages.
    let location: String
    let configuration: StoreConfiguration
    let ledger: UsageLedger
    let finished: FinishedUploads
    let pathLocks = PathLocks()
    let failedPublications = FailedPublications()
    let newBlobs = NewBlobs()
    let failedRemovals = FailedRemovals()
    let fileRecords = FileRecordCache()
    let nameIndexes = NameIndexes()
    let newFiles = SharedWork<NewFile, NewFile.Outcome?>()
    let acknowledging: WorkQueue
    let digesting: WorkQueue
    let writeBack: WorkQueue
    /// Threads that release uploads for other stores.
    let holdReleases: WorkQueue
    /// Threads that acknowledge uploads that other stores wait for.
    let holdReleaseAcknowledging: WorkQueue
    /// The number of these threads that wait until bytes are durable.
    private let holdReleaseWaits = Monitor(0)
    let observer = Monitor<(any StoreObserver)?>(nil)
    let losses = Monitor(Losses())
    /// The deliveries since the store was opened.
    let eventCounts = Monitor(OutboxStatistics())
    let clockObservation: Monitor<ClockObservation>
    private let lastModification = Monitor<Int64>(0)
    private let lastTicket = Atomic(0)
    private let blobNames = UInt64.random(in: .min ... .max)
    private let lastBlobName = Atomic<UInt64>(0)

    init(
        catalog: any UploadCatalog, area: any BlobArea, location: String, configuration: StoreConfiguration
    ) throws(StoreError) {
        self.catalog = catalog
        self.area = area
        publishingArea = area as? any PublishingBlobArea
        self.location = location
        self.configuration = configuration
        let reading = configuration.clock()
        let clock = LifetimeClock(
            after: try catalog.timeMark(), at: reading, lifetime: configuration.lifetime.wholeSeconds,
            isShared: catalog.isShared)
        clockObservation = Monitor(ClockObservation(clock: clock, last: reading, nextMark: reading.boot))
        let totals = catalog.savedTotals
        ledger = UsageLedger(totals?.usage, configuration: configuration, isShared: catalog.isShared)
        finished = FinishedUploads(complete: totals?.complete ?? 0, invalid: totals?.invalid ?? 0)
        let holdReleaseThreads = catalog.isShared ? Self.holdReleaseThreads : 0
        let acknowledgmentThreads = catalog.isShared ? Self.sharedAcknowledgmentThreads : Self.acknowledgmentThreads
        (acknowledging, digesting, writeBack) = try startingThreads { () throws(Errno) in
            (
                try WorkQueue(name: "acknowledge", threads: acknowledgmentThreads),
                try WorkQueue(name: "digest", threads: 2), try WorkQueue(name: "write-back", threads: 1)
            )
        }
        (holdReleases, holdReleaseAcknowledging) = try startingThreads { () throws(Errno) in
            (
                try WorkQueue(name: "hold-release", threads: holdReleaseThreads),
                try WorkQueue(name: "hold-release", threads: 2 * holdReleaseThreads)
            )
        }
    }

    private static let acknowledgmentThreads = 4
    /// With a shared storage each of these threads waits for the network most of the time.
    static let sharedAcknowledgmentThreads = 32
    private static let holdReleaseThreads = 4

    /// - Returns: whether a thread that releases an upload may wait: one of them never waits.
    func beginHoldReleaseWait() -> Bool {
        holdReleaseWaits.withLock { count in
            guard count < Self.holdReleaseThreads - 1 else { return false }
            count += 1
            return true
        }
    }

    func endHoldReleaseWait() { holdReleaseWaits.withLock { $0 -= 1 } }

    /// Ends the threads after the queued work.
    func close() {
        acknowledging.close()
        digesting.close()
        writeBack.close()
        holdReleases.close()
        holdReleaseAcknowledging.close()
    }

    /// The deadline by which another store has to release an upload, in monotonic nanoseconds.
    var acquisitionDeadline: Int64 { SystemClock.deadline(in: configuration.acquisitionWait) }

    /// The blob area, if other programs can get its bytes by path.
    var sharingArea: any SharingBlobArea {
        get throws(StoreError) {
            guard let area = area as? any SharingBlobArea else {
                throw .unusableHandover("handover= needs a data directory, because this store has no files")
            }
            return area
        }
    }

    /// Whether bytes and rows are synchronized with the disk: not with the durability `relaxed`.
    var shouldSynchronize: Bool { configuration.durability == .acknowledged }

    /// The time until which a complete or invalid upload is kept if it ends now.
    var expiryOfFinished: Int64 { time + configuration.keepCompleted.wholeSeconds }

    /// The current time in seconds for the evaluation of lifetimes: see ``UploadStore/time``.
    var time: Int64 { clockObservation.withLock { $0.clock }.time(at: configuration.clock()) }

    /// Throws if the bytes of a new upload would exceed the quota of their principal in a shared catalog. This is an early
    /// check: the catalog checks the quota again, for all stores together, in the transaction that records bytes or
    /// publishes a file. Short uploads that have no row before their end are only checked here against the number of
    /// uploads, because to count each of them would need one more transaction.
    /// - Parameter isNew: whether these are the bytes of a new upload that has no row at first. The catalog counts it later.
    func requireSharedLimits(of principal: String, for bytes: Int64, isNew: Bool = false) throws(StoreError) {
        let quota = bytes > 0 ? configuration.quotaPerPrincipal : nil
        let maxUploads = isNew ? configuration.maxUploadsPerPrincipal : nil
        guard catalog.isShared, quota != nil || maxUploads != nil else { return }
        let usage = try catalog.sharedUsage(of: principal)[principal] ?? Usage()
        if let maxUploads, usage.uploads >= maxUploads { throw .tooManyUploads(limit: maxUploads) }
        if let quota, bytes > quota - usage.bytes { throw .quotaExceeded(limit: quota) }
    }

    /// The number of bytes that received content must leave free on the disk for the catalog.
    func floor(of space: FileSystemSpace) -> Int64 {
        min(configuration.effectiveMinFree(total: space.total) / 2, WritePace.catalogRoom)
    }

    /// Returns the numbers of the shortage if fewer bytes are free than `kept` and `announced` together; nil if enough
    /// are free.
    func shortage(free: Int64, kept: Int64, announced: Int64 = 0) -> SpaceShortage? {
        let needed = kept.addingReportingOverflow(announced)
        guard needed.overflow || free < needed.partialValue else { return nil }
        return SpaceShortage(root: location, free: free, kept: kept, announced: announced)
    }

    /// Removes bytes that are not needed. If that fails, the sweep removes them.
    func discard(_ blob: String) {
        _ = try? area.remove(blob)
        newBlobs.remove(blob)
    }

    /// A number for one request in the queue of an upload.
    func nextTicket() -> Int { lastTicket.wrappingAdd(1, ordering: .relaxed).newValue }

    /// A name for new bytes, which no other bytes have had. It is not secret, and reveals nothing about the upload.
    func nextBlobName() -> String {
        UploadID(high: blobNames, low: lastBlobName.wrappingAdd(1, ordering: .relaxed).newValue).text
    }

    /// Returns the current time in nanoseconds since 1970, and never the same time twice.
    func nextModification() -> Int64 {
        lastModification.withLock { last in
            last = max(last + 1, catalog.isShared ? configuration.clock().wall : SystemClock.realtimeNanoseconds())
            return last
        }
    }

    /// Runs a step and reports to the observer how long it took.
    func observing<Result, Failure: Error>(
        _ step: DurableStep, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let observer = observer.withLock({ $0 }) else { return try body() }
        let start = SystemClock.monotonicNanoseconds()
        var hasFailed = false
        defer { observer.observe(step, nanoseconds: SystemClock.monotonicNanoseconds() - start, isDone: !hasFailed) }
        do throws(Failure) {
            return try body()
        } catch {
            // An error that a take-over causes is not a failure of the storage.
            hasFailed = (error as? StoreError)?.isForOperator ?? true
            throw error
        }
    }

    func reportLoss(of upload: UploadID) {
        let report = losses.withLock { losses in
            if losses.report == nil { losses.unreported.append(upload) }
            return losses.report
        }
        report?(upload)
    }
}

/// Rows in a shared catalog that may exist although their creation was reported as failed, and that could not be removed.
/// The sweep removes them.
final class FailedRemovals: Sendable {
    /// The maximum number of rows: more than the number of requests in progress when a database fails. Further rows are
    /// not noted.
    private static let limit = 4096

    private let removals = Monitor<[OpenUpload.Removal]>([])

    func add(_ removal: OpenUpload.Removal) {
        removals.withLock { removals in if removals.count < Self.limit { removals.append(removal) } }
    }

    /// Returns all removals, and forgets them.
    func removeAll() -> [OpenUpload.Removal] {
        removals.withLock { removals in
            defer { removals = [] }
            return removals
        }
    }
}

/// The names of the bytes of uploads that may have no row: plain uploads, uploads that are recorded late, and uploads
/// that are being created. The sweep does not remove these bytes. A name is removed from this set after the row
/// is durable, or after the upload has ended and is not counted any more.
final class NewBlobs: Sendable {
    private let state = Monitor((names: Set<String>(), isClosed: false))

    /// - Throws: `superseded` after ``close()``.
    func add(_ name: String) throws(StoreError) {
        try state.withLock { (state) throws(StoreError) in
            if state.isClosed { throw .superseded }
            state.names.insert(name)
        }
    }

    func remove(_ name: String) { state.withLock { _ = $0.names.remove(name) } }

    func contains(_ name: String) -> Bool { state.withLock { $0.names.contains(name) } }

    /// Whether every upload that is counted has a row.
    var isEmpty: Bool { state.withLock { $0.names.isEmpty } }

    /// Rejects all later names.
    func close() { state.withLock { $0.isClosed = true } }
}
