import HTTPSemantics
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
    let gathering: GatheredAcknowledgments
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
        (acknowledging, gathering, digesting, writeBack) = try startingThreads { () throws(Errno) in
            (
                try WorkQueue(name: "acknowledge", threads: acknowledgmentThreads), try GatheredAcknowledgments(),
                try WorkQueue(name: "digest", threads: 2),
                try WorkQueue(name: "write-back", threads: 1)
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
        gathering.close()
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
            hasFailed = (error as? StoreError)?.concernsOperator ?? true
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
    /// More rows than requests are in progress when a database fails. Those that are created later have no effect.
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

extension UploadStore {
    /// The numbers of the shortage if there is too little free space for new uploads; `nil` if there is enough, or if
    /// the free space is unknown.
    package var spaceShortage: SpaceShortage? {
        guard let space = try? context.area.space() else { return nil }
        return context.shortage(free: space.free, kept: context.configuration.effectiveMinFree(total: space.total))
    }
}

extension StoreContext {
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
    /// The time for which a request waits until another store has released the upload.
    package var acquisitionWait: Duration = .seconds(3)

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
