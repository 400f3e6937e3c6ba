/// How much a store holds at one moment.
public struct StoreStatistics: Sendable, Hashable {
    /// Uploads that wait for content or for the request that completes them.
    public var receiving = 0
    /// Uploads that are decided and not brought to their end.
    public var processing = 0
    /// Finished uploads of which the answer is remembered.
    public var complete = 0
    /// Uploads that will never be usable again and are remembered.
    public var invalid = 0
    /// Uploads that became invalid because acknowledged bytes were missing, since the store was opened.
    public var lost = 0
    /// Bytes of published files.
    public var publishedBytes: Int64 = 0
    /// Bytes that unfinished uploads will have, or have where their length is unknown.
    public var reservedBytes: Int64 = 0
    /// Bytes of the catalogue.
    public var catalogueBytes: Int64 = 0
    /// Changes that were made durable since the store was opened, and the transactions that they shared.
    public var catalogueChanges = 0
    public var catalogueTransactions = 0
    /// Bytes of the file system that are free for the store, and of all of it; `nil` where that cannot be told.
    public var freeBytes: Int64?
    public var capacityBytes: Int64?
    /// Free bytes below which nothing new is begun; `nil` as those.
    public var minFreeBytes: Int64?

    public init() {}
}
