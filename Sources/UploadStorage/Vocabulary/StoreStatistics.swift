/// The numbers of uploads, files and bytes in a store at one moment. After an unclean stop the store has to count them
/// first; until then, and if the count has failed, the numbers that depend on it are `nil`.
package struct StoreStatistics: Sendable, Hashable {
    /// Uploads that wait for content or for the request that completes them; `nil` until everything is counted.
    package var receiving: Int?
    /// Uploads whose processing or publication has begun and is not complete.
    package var processing = 0
    /// Retained requests whose outcome is unknown; nil if they cannot be counted.
    package var retained: Int?
    /// The numbers of events; nil if events are not recorded, or cannot be counted.
    package var events: OutboxStatistics?
    /// Finished uploads whose final response is kept; `nil` until everything is counted.
    package var complete: Int?
    /// Permanently unusable uploads that are kept; `nil` until everything is counted.
    package var invalid: Int?
    /// The number of uploads that have become invalid since the store was opened, because acknowledged bytes were
    /// missing.
    package var lost = 0
    /// Bytes of published files; `nil` until everything is counted.
    package var publishedBytes: Int64?
    /// Bytes that unfinished uploads reserve: the length of each, or its received bytes if the length is unknown; `nil`
    /// until everything is counted.
    package var reservedBytes: Int64?
    /// The size of the catalog in bytes.
    package var catalogBytes: Int64 = 0
    /// Changes that were made durable since the store was opened, and the transactions that they shared.
    package var catalogChanges = 0
    package var catalogTransactions = 0
    /// The free bytes and all bytes of the file system; `nil` if that is unknown.
    package var freeBytes: Int64?
    package var capacityBytes: Int64?
    /// Free bytes below which new uploads are refused; `nil` if that is unknown.
    package var minFreeBytes: Int64?

    package init() {}
}
