/// How much a store holds at one moment. After an unclean stop the store first has to count what it holds; until then, and
/// if the count has failed, the numbers that depend on it are `nil`.
public struct StoreStatistics: Sendable, Hashable {
    /// Uploads that wait for content or for the request that completes them; `nil` until everything is counted.
    public var receiving: Int?
    /// Uploads that are decided and not brought to their end.
    public var processing = 0
    /// Finished uploads of which the answer is remembered; `nil` until everything is counted.
    public var complete: Int?
    /// Uploads that will never be usable again and are remembered; `nil` until everything is counted.
    public var invalid: Int?
    /// Uploads that became invalid because acknowledged bytes were missing, since the store was opened.
    public var lost = 0
    /// Bytes of published files; `nil` until everything is counted.
    public var publishedBytes: Int64?
    /// Bytes that unfinished uploads will have, or have where their length is unknown; `nil` until everything is counted.
    public var reservedBytes: Int64?
    /// Bytes of the catalog.
    public var catalogBytes: Int64 = 0
    /// Changes that were made durable since the store was opened, and the transactions that they shared.
    public var catalogChanges = 0
    public var catalogTransactions = 0
    /// Bytes of the file system that are free for the store, and of all of it; `nil` where that cannot be told.
    public var freeBytes: Int64?
    public var capacityBytes: Int64?
    /// Free bytes below which nothing new is begun; `nil` as those.
    public var minFreeBytes: Int64?

    public init() {}
}
