/// The durable rows of a store. Safe to use from any thread.
package protocol UploadCatalogue: Sendable {
    /// Makes a change and returns once it is durable. Changes of one caller keep their order.
    func commit(_ change: CatalogueChange) throws(StoreError)

    func row(_ id: UploadID) throws(StoreError) -> CatalogueRow?
    /// All rows in phase receiving or processing.
    func unfinishedRows() throws(StoreError) -> [CatalogueRow]
    /// Uploads in phase processing.
    func processing() throws(StoreError) -> [UploadID]
    /// Uploads of any phase whose time has passed, at most `limit`, the oldest first.
    func expired(at now: Int64, limit: Int) throws(StoreError) -> [UploadID]
    /// Uploads in phase complete and in phase invalid. May look at each of them.
    func finishedCounts() throws(StoreError) -> (complete: Int, invalid: Int)
    /// Whether an unfinished upload has its bytes under this name.
    func needsBlob(_ name: String) throws(StoreError) -> Bool

    func file(_ name: String) throws(StoreError) -> FileRecord?
    /// Records in the order of their names, from behind `name` on, at most `limit`.
    func files(after name: String, limit: Int) throws(StoreError) -> [FileRecord]
    /// Bytes of the published files of each principal.
    func publishedBytes() throws(StoreError) -> [String: Int64]

    /// The last mark of the clock that was recorded; nil: none was.
    func timeMark() throws(StoreError) -> LifetimeClock.Mark?

    /// What it takes of the disk, as far as it knows.
    func sizeInBytes() throws(StoreError) -> Int64

    var statistics: CatalogueStatistics { get }
    /// Ends what was begun and takes nothing more: later changes fail with ``StoreError/superseded``.
    func close()
}
