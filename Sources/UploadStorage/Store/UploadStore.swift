import ResumableUpload
import SystemCalls

/// Uploads and published files: durable state, bytes, and the right to write to them. Safe to use from any thread.
///
/// The promise: an offset that was acknowledged is never taken back, and a publication happens once, whole or not at all,
/// whatever ends the process.
public final class UploadStore: Sendable {
    let catalogue: any UploadCatalogue
    let area: any BlobArea
    /// The data directory, for people.
    let location: String
    let configuration: StoreConfiguration
    let registry = UploadRegistry()
    let pathLocks = PathLocks()
    let ledger: UsageLedger
    let finished: FinishedUploads
    let acknowledging: WorkQueue
    let digesting: WorkQueue
    let writeBack: WorkQueue
    let healthCheck: WorkQueue
    let lastModification = Monitor<Int64>(0)
    /// The name of the published file that the sweep looked at last.
    let sweptFile = Monitor("")
    let observer = Monitor<(any StoreObserver)?>(nil)
    let losses = Monitor(Losses())
    let clockObservation: Monitor<ClockObservation>
    let healthProbe = Monitor(HealthProbe())

    /// Starts over a catalogue and a blob area, and brings both into agreement: publications that were decided are carried
    /// out, targets that were at work get the interrupted response, bytes without an upload are removed, uploads without
    /// their bytes become invalid.
    package init(
        catalogue: any UploadCatalogue, area: any BlobArea, location: String = "the store",
        configuration: StoreConfiguration
    ) throws(StoreError) {
        self.catalogue = catalogue
        self.area = area
        self.location = location
        self.configuration = configuration
        let reading = configuration.clock()
        let clock = LifetimeClock(
            after: try catalogue.timeMark(), at: reading, lifetime: configuration.lifetime)
        clockObservation = Monitor(ClockObservation(clock: clock, last: reading, nextMark: reading.boot))
        let rows = try catalogue.unfinishedRows()
        ledger = UsageLedger(
            Self.usage(of: rows, publishedBytes: try catalogue.publishedBytes()), configuration: configuration)
        let (complete, invalid) = try catalogue.finishedCounts()
        finished = FinishedUploads(complete: complete, invalid: invalid)
        (acknowledging, digesting, writeBack, healthCheck) = try startingThreads { () throws(Errno) in
            (
                try WorkQueue(name: "acknowledge", threads: 4), try WorkQueue(name: "digest", threads: 2),
                try WorkQueue(name: "write-back", threads: 1), try WorkQueue(name: "health", threads: 1)
            )
        }
        try recover(rows)
        _ = observeClock()
    }

    deinit { close() }

    private static func usage(of rows: [CatalogueRow], publishedBytes: [String: Int64]) -> [String: Usage] {
        var usage = publishedBytes.mapValues { Usage(publishedBytes: $0) }
        for row in rows {
            usage[row.upload.principal, default: Usage()].uploads += 1
            usage[row.upload.principal, default: Usage()].reservedBytes += row.reservedBytes
        }
        return usage
    }

    /// Whether bytes are moved to stable storage at all.
    var writesBack: Bool { configuration.durability == .acknowledged }

    /// Until when a complete or invalid upload is remembered.
    var expiryOfFinished: Int64 { time + configuration.keepCompleted }

    /// Removes bytes that nobody needs. What fails is an orphan, for the sweep to find.
    func discard(_ blob: String) { _ = try? area.remove(blob) }

    /// What one principal uses now.
    public func usage(of principal: String) -> Usage { ledger.usage(of: principal) }

    /// The state of an upload, without disturbing anybody who writes to it. The offset is durable.
    public func record(_ id: UploadID) throws(StoreError) -> UploadRecord {
        if let upload = registry.current(id), let record = upload.monitor.withLock({ upload.record($0) }) {
            return record
        }
        guard let row = try catalogue.row(id) else { throw .notFound }
        return row.record
    }

    /// Ends all work. Targets at work get a moment to end, then every lease that is out is superseded.
    ///
    /// What the leases have received is not acknowledged here: release them first.
    public func close() {
        let deadline =
            SystemClock.monotonicNanoseconds() + Int64(configuration.processingWait / .nanoseconds(1))
        for upload in registry.close() { upload.supersede(until: deadline) }
        acknowledging.close()
        digesting.close()
        writeBack.close()
        healthCheck.close()
        saveMark(at: configuration.clock())
        catalogue.close()
        area.close()
    }
}
