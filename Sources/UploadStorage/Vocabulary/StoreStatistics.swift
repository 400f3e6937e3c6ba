/// How much a store holds at one moment. After an unclean stop the store first has to count what it holds; until then, and
/// if the count has failed, the numbers that depend on it are `nil`.
package struct StoreStatistics: Sendable, Hashable {
    /// Uploads that wait for content or for the request that completes them; `nil` until everything is counted.
    package var receiving: Int?
    /// Uploads that are decided and not brought to their end.
    package var processing = 0
    /// Finished uploads of which the answer is remembered; `nil` until everything is counted.
    package var complete: Int?
    /// Uploads that will never be usable again and are remembered; `nil` until everything is counted.
    package var invalid: Int?
    /// Uploads that became invalid because acknowledged bytes were missing, since the store was opened.
    package var lost = 0
    /// Bytes of published files; `nil` until everything is counted.
    package var publishedBytes: Int64?
    /// Bytes that unfinished uploads will have, or have if their length is unknown; `nil` until everything is counted.
    package var reservedBytes: Int64?
    /// Bytes of the catalog.
    package var catalogBytes: Int64 = 0
    /// Changes that were made durable since the store was opened, and the transactions that they shared.
    package var catalogChanges = 0
    package var catalogTransactions = 0
    /// Bytes of the file system that are free for the store, and of the entire file system; `nil` if that is unknown.
    package var freeBytes: Int64?
    package var capacityBytes: Int64?
    /// Free bytes below which nothing new is begun; `nil` as those.
    package var minFreeBytes: Int64?

    package init() {}
}
