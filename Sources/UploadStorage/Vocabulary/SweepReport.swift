/// What one sweep removed.
package struct SweepReport: Sendable, Hashable {
    /// Uploads that had expired, complete and invalid ones included.
    package var expired = 0
    /// Those of them that nobody had finished.
    package var unfinished = 0
    /// Pieces of bytes that no upload knows.
    package var orphans = 0
    /// Entries of the quota whose file has vanished.
    package var vanishedFiles = 0
    /// Interrupted publications that were carried to their end.
    package var settled = 0
    /// Seconds by which the wall clock jumped since the sweep before; negative: backward; nil: it did not. Lifetimes are
    /// not affected.
    package var clockJump: Int64?
    /// What could not be removed this time.
    package var failures: [StoreError] = []

    package init() {}
}
