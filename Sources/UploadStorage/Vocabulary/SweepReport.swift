/// What one sweep removed.
public struct SweepReport: Sendable, Hashable {
    /// Uploads that had expired, complete and invalid ones included.
    public var expired = 0
    /// Those of them that nobody had finished.
    public var unfinished = 0
    /// Pieces of bytes that no upload knows.
    public var orphans = 0
    /// Entries of the quota whose file has vanished.
    public var vanishedFiles = 0
    /// Interrupted publications that were carried to their end.
    public var settled = 0
    /// Seconds by which the wall clock jumped since the sweep before; negative: backward; nil: it did not. Lifetimes are
    /// not affected.
    public var clockJump: Int64?
    /// What could not be removed this time.
    public var failures: [StoreError] = []

    public init() {}
}
