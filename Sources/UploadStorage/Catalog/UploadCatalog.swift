import HTTPSemantics
import ResumableUpload

/// The durable rows of a store. Safe to use from any thread.
package protocol UploadCatalog: Sendable {
    /// Makes changes and returns once they are durable. Changes of one caller keep their order. A change that fails
    /// does not affect others.
    ///
    /// - Returns: for each change what it removed or replaced, or its error.
    func commit(_ changes: [CatalogChange]) -> [Result<RemovedRows, StoreError>]

    /// Waits some seconds until the outcome of each change whose commit has failed is known. After that, the rows
    /// contain the change, or it is never made.
    /// - Throws: `unavailable` if it is still unknown.
    func awaitOutcomes() throws(StoreError)

    func row(_ id: UploadID) throws(StoreError) -> CatalogRow?
    /// Returns at most `limit` rows of all phases in the order of their ids, starting after `id`.
    func rows(after id: UploadID?, limit: Int) throws(StoreError) -> [CatalogRow]

    /// Whether several stores use this catalog at the same time. The limits of a principal are then checked by the
    /// catalog, for all stores together.
    var isShared: Bool { get }
    /// Reads the row of an upload, and makes this store the holder of the upload if it is unfinished: only its holder
    /// can change the row. If another store is the holder, requests the upload from it, and waits at most until
    /// `deadline` (monotonic nanoseconds).
    /// - Returns: nil if there is no row.
    /// - Throws: ``StoreError/heldElsewhere`` if the upload was not released by the deadline; other errors if the row
    ///   cannot be read.
    func acquire(_ id: UploadID, until deadline: Int64) throws(StoreError) -> HeldRow?
    /// Ends the hold with this fence, so that another store can become the holder. Does nothing if the hold has ended.
    func release(_ id: UploadID, fence: Int64)
    /// Whether this store is certainly the holder of an upload with this fence. False as soon as another store can
    /// become the holder because this store could not renew its holds. The exception is an upload whose row records that the
    /// target resource processes it: true until it is known that another store has become the holder.
    func holds(_ id: UploadID, fence: Int64) -> Bool
    /// Returns whether no store has become the holder since the hold with this fence. The row then has no changes of other
    /// stores, whatever the clocks show.
    func isCurrent(_ fence: Int64, of id: UploadID) throws(StoreError) -> Bool
    /// Sets closures that are called on a thread of the catalog and must not block. `requested` is called when another
    /// store is to become the holder of an upload; `lost` is called with uploads whose holds have ended without a
    /// release.
    func onHolds(
        requested: @escaping @Sendable (UploadID) -> Void, lost: @escaping @Sendable ([UploadID]) -> Void)
    /// Whether this store receives the requests of other stores to release an upload, and they receive its requests.
    var isReceivingNotifications: Bool { get }
    /// The usage of a principal, or of all principals if it is nil, in a catalog that ``isShared``.
    func sharedUsage(of principal: String?) throws(StoreError) -> [String: Usage]

    /// Returns at most `limit` uploads in the phase processing, in the order of their ids, starting after `id`.
    func processing(after id: UploadID?, limit: Int) throws(StoreError) -> [UploadID]
    func processingCount() throws(StoreError) -> Int
    /// Returns at most `limit` uploads in the phase receiving that have durable bytes, in the order of their ids,
    /// starting after `id`.
    func receiving(after id: UploadID?, limit: Int) throws(StoreError) -> [DurableBytes]
    /// Returns at most `limit` unfinished uploads that have expired, the oldest first.
    func expired(at now: Int64, limit: Int) throws(StoreError) -> [UploadID]
    /// Returns whether an upload of any phase expires after this time.
    func isExpiring(after time: Int64) throws(StoreError) -> Bool
    /// Returns whether the bytes of an unfinished upload have this name.
    func needsBlob(_ name: String) throws(StoreError) -> Bool

    func file(_ name: String) throws(StoreError) -> FileRecord?
    /// Returns at most `limit` records in the order of their names, starting after `name`.
    func files(after name: String, limit: Int) throws(StoreError) -> [FileRecord]

    /// The totals of all rows when the catalog was opened; nil if ``countTotals()`` has to count them.
    var savedTotals: CatalogTotals? { get }
    /// Counts the rows that existed when the catalog was opened, in constant memory. Throws ``StoreError/damaged(_:)``,
    /// and then the catalog accepts no more changes; after another error this method can be called again. Call
    /// ``verify()`` afterwards, even if this method has thrown an error.
    func countTotals() throws(StoreError) -> CatalogTotals
    /// Interrupts a running count or verification, which then fails with ``StoreError/superseded``; the next start
    /// repeats it. Called before ``close(saving:)``.
    func stopCounting()
    /// Whether the catalog was not closed properly, so ``verify()`` is needed.
    var isVerificationNeeded: Bool { get }
    /// Checks the database for damage, in the state that it had when the catalog was opened. Does nothing if
    /// ``isVerificationNeeded`` is false. This method also releases the resources of ``countTotals()``. Throws
    /// ``StoreError/damaged(_:)``, and then the catalog accepts no more changes.
    func verify() throws(StoreError)

    /// The damage that was found when a damaged page was read or written; nil if no damage was found. After damage was
    /// found, the catalog accepts no more changes.
    var damage: StoreError? { get }

    /// Returns the last recorded mark of the clock; nil if there is none.
    func timeMark() throws(StoreError) -> LifetimeClock.Mark?

    /// Returns at most `limit` events that are not set aside, in the order of their numbers, starting after `number`.
    func events(after number: Int64, limit: Int) throws(StoreError) -> [OutboxEntry]
    /// Returns at most `limit` events for which an operator has requested another attempt.
    func retriedEvents(limit: Int) throws(StoreError) -> [OutboxEntry]
    /// Returns whether this event exists and is not set aside.
    func hasEvent(_ number: Int64) throws(StoreError) -> Bool
    /// Whether this store drops events that are too old or too many. Of several stores that share a catalog, only the one
    /// that delivers events does.
    var shouldDropEvents: Bool { get }
    /// Returns how many events are in the outbox.
    func countEvents() throws(StoreError) -> OutboxStatistics
    /// Calls `body` after each commit that has recorded events, on the thread of the commit.
    func onEvents(_ body: @escaping @Sendable () -> Void)

    /// Returns the size of the catalog on the disk in bytes.
    func sizeInBytes() throws(StoreError) -> Int64

    var statistics: CatalogStatistics { get }
    /// Completes the changes that have begun. Later changes fail with ``StoreError/superseded``. A running count or
    /// verification is interrupted.
    ///
    /// - Parameter totals: the totals of all rows, which are saved for the next start; nil if they are not known
    ///   exactly.
    func close(saving totals: CatalogTotals?)
}

/// A row, and the fence of the hold with which it was read. The first hold of a new upload has the fence 1; each later
/// hold has a higher one.
package struct HeldRow: Sendable, Hashable {
    package var row: CatalogRow
    package var fence: Int64

    package init(row: CatalogRow, fence: Int64) {
        self.row = row
        self.fence = fence
    }
}

/// A catalog that only one store uses: this store is the holder of every upload.
extension UploadCatalog {
    package var isShared: Bool { false }

    package var shouldDropEvents: Bool { true }

    package func awaitOutcomes() throws(StoreError) {}

    package func acquire(_ id: UploadID, until deadline: Int64) throws(StoreError) -> HeldRow? {
        try row(id).map { HeldRow(row: $0, fence: 1) }
    }

    package func release(_ id: UploadID, fence: Int64) {}

    package func holds(_ id: UploadID, fence: Int64) -> Bool { true }

    package func isCurrent(_ fence: Int64, of id: UploadID) throws(StoreError) -> Bool { true }

    package func onHolds(
        requested: @escaping @Sendable (UploadID) -> Void, lost: @escaping @Sendable ([UploadID]) -> Void
    ) {}

    package var isReceivingNotifications: Bool { true }

    package func sharedUsage(of principal: String?) throws(StoreError) -> [String: Usage] { [:] }
}

/// The bytes that an unfinished upload must have.
package struct DurableBytes: Sendable, Hashable {
    package var id: UploadID
    package var blob: String
    package var offset: Int64

    package init(id: UploadID, blob: String, offset: Int64) {
        self.id = id
        self.blob = blob
        self.offset = offset
    }
}

extension UploadCatalog {
    /// Makes a change and returns once it is durable.
    ///
    /// - Returns: what the change removed or replaced.
    @discardableResult
    package func commit(_ change: CatalogChange) throws(StoreError) -> RemovedRows { try commit([change])[0].get() }

    /// Commits a change of one upload. Even if the commit fails, the change may have been made. Then this method waits until
    /// that is known: if the row shows that it was made, the failure is ignored.
    ///
    /// - Returns: what the change removed or replaced; nil if the commit failed, but the change was made.
    @discardableResult
    func commit(_ change: CatalogChange, of id: UploadID) throws(StoreError) -> RemovedRows? {
        do throws(StoreError) {
            return try commit(change)
        } catch {
            try awaitOutcomes()
            guard change.isMade(in: try row(id)) else { throw error }
            return nil
        }
    }
}

/// Counts since the catalog was opened. One transaction can contain several changes.
package struct CatalogStatistics: Sendable, Hashable {
    package var changes = 0
    package var transactions = 0
    /// Events that were recorded.
    package var events = 0

    package init() {}
}

/// The totals of all rows of a catalog.
package struct CatalogTotals: Sendable, Hashable {
    /// The usage of each principal.
    package var usage: [String: Usage] = [:]
    /// The numbers of uploads in the phases complete and invalid.
    package var complete = 0
    package var invalid = 0

    package init() {}
}

/// The rows that a change has removed or replaced: numbers of uploads by their phase, and the record of a file.
package struct RemovedRows: Sendable, Hashable {
    package var unfinished = 0
    package var complete = 0
    package var invalid = 0
    /// The record that the record of a new file has replaced; nil if there was none.
    package var file: FileRecord?
    /// The numbers of dropped events.
    package var events: [Int64] = []

    package init() {}

    var finished: Int { complete + invalid }

    mutating func add(_ other: RemovedRows) {
        unfinished += other.unfinished
        complete += other.complete
        invalid += other.invalid
    }

    package mutating func add(_ phase: UploadRecord.Phase) {
        switch phase {
        case .receiving, .processing: unfinished += 1
        case .complete: complete += 1
        case .invalid: invalid += 1
        }
    }
}

/// The usage of a principal.
package struct Usage: Sendable, Hashable {
    /// The number of unfinished uploads.
    package var uploads: Int
    /// The number of bytes that unfinished uploads reserve: the length of each, or its received bytes if the length is
    /// unknown.
    package var reservedBytes: Int64
    /// The number of bytes in the published files that this principal created.
    package var publishedBytes: Int64

    /// The bytes that count toward the quota.
    package var bytes: Int64 {
        let (sum, overflow) = reservedBytes.addingReportingOverflow(publishedBytes)
        return overflow ? .max : sum
    }

    package init(uploads: Int = 0, reservedBytes: Int64 = 0, publishedBytes: Int64 = 0) {
        self.uploads = uploads
        self.reservedBytes = reservedBytes
        self.publishedBytes = publishedBytes
    }
}

/// The row of an upload in the catalog.
package struct CatalogRow: Sendable, Hashable {
    package var id: UploadID
    /// The name of the bytes in the blob area. It differs from the id, because the id gives access to the upload.
    package var blob: String
    package var upload: NewUpload
    package var createdAt: Int64
    package var expiresAt: Int64?
    package var epoch: Int64
    /// The number of durable bytes.
    package var offset: Int64
    package var length: Int64?
    package var phase: UploadRecord.Phase
    /// The publication that was decided, until it is complete.
    package var intent: PublicationIntent?
    /// The encoded states of the running digests. Each contains the count of bytes that it covers, at most `offset`.
    package var digestStates: [[UInt8]]
    /// Whether the publication in `intent` failed and has to be withdrawn.
    package var isWithdrawn = false

    package init(
        id: UploadID, blob: String, upload: NewUpload, createdAt: Int64, expiresAt: Int64? = nil, epoch: Int64,
        offset: Int64, length: Int64? = nil, phase: UploadRecord.Phase, intent: PublicationIntent? = nil,
        digestStates: [[UInt8]], isWithdrawn: Bool = false
    ) {
        self.id = id
        self.blob = blob
        self.upload = upload
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.epoch = epoch
        self.offset = offset
        self.length = length
        self.phase = phase
        self.intent = intent
        self.digestStates = digestStates
        self.isWithdrawn = isWithdrawn
    }

    var record: UploadRecord {
        UploadRecord(
            id: id, upload: upload, offset: offset, length: length, phase: phase, createdAt: createdAt,
            expiresAt: expiresAt)
    }

    /// Whether the upload is unfinished, so its bytes are needed.
    package var isUnfinished: Bool {
        switch phase {
        case .receiving, .processing: true
        case .complete, .invalid: false
        }
    }

    /// Returns the row with another offset, which is also its length.
    func advanced(to offset: Int64) -> CatalogRow {
        var row = self
        row.offset = offset
        row.length = offset
        return row
    }

    /// The number of bytes that count toward the quota of the principal.
    package var reservedBytes: Int64 { length ?? offset }
}
