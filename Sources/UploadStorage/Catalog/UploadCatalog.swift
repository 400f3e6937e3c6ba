/// The durable rows of a store. Safe to use from any thread.
package protocol UploadCatalog: Sendable {
    /// Makes changes and returns once they are durable. Changes of one caller keep their order. A change that fails
    /// does not affect others.
    ///
    /// - Returns: for each change what it removed or replaced, or its error.
    func commit(_ changes: [CatalogChange]) -> [Result<RemovedRows, StoreError>]

    func row(_ id: UploadID) throws(StoreError) -> CatalogRow?
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
    /// Whether the catalog was not closed properly, so that ``verify()`` is needed.
    var needsVerification: Bool { get }
    /// Checks the database for damage, in the state that it had when the catalog was opened. Does nothing if
    /// ``needsVerification`` is false. This method also releases the resources of ``countTotals()``. Throws
    /// ``StoreError/damaged(_:)``, and then the catalog accepts no more changes.
    func verify() throws(StoreError)

    /// The damage that was found when a damaged page was read or written; nil if no damage was found. After damage was
    /// found, the catalog accepts no more changes.
    var damage: StoreError? { get }

    /// Returns the last recorded mark of the clock; nil if there is none.
    func timeMark() throws(StoreError) -> LifetimeClock.Mark?

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

/// The bytes that an unfinished upload must have.
package struct DurableBytes: Sendable, Hashable {
    package var id: UploadID
    package var blob: String
    package var offset: Int64
}

extension UploadCatalog {
    /// Makes a change and returns once it is durable.
    ///
    /// - Returns: what the change removed or replaced.
    @discardableResult
    func commit(_ change: CatalogChange) throws(StoreError) -> RemovedRows { try commit([change])[0].get() }

    /// Commits a change of one upload. Even if the commit fails, the change may have been made: if `isMade` returns
    /// true for the row, the failure is ignored.
    ///
    /// - Returns: what the change removed or replaced; nil if the commit failed, but the change was made.
    @discardableResult
    func commit(
        _ change: CatalogChange, of id: UploadID, confirmedBy isMade: (CatalogRow?) -> Bool
    ) throws(StoreError) -> RemovedRows? {
        do throws(StoreError) {
            return try commit(change)
        } catch {
            let row: CatalogRow?
            do throws(StoreError) { row = try self.row(id) } catch { throw error }
            guard isMade(row) else { throw error }
            return nil
        }
    }
}

/// Counts since the catalog was opened: with group commit there are fewer transactions than commits.
package struct CatalogStatistics: Sendable, Hashable {
    package var commits = 0
    package var transactions = 0

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

    package init() {}

    var finished: Int { complete + invalid }

    mutating func add(_ phase: UploadRecord.Phase) {
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

    package init(uploads: Int = 0, reservedBytes: Int64 = 0, publishedBytes: Int64 = 0) {
        self.uploads = uploads
        self.reservedBytes = reservedBytes
        self.publishedBytes = publishedBytes
    }
}
