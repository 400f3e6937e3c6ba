import HTTPSemantics
import ResumableUpload

/// One change of the catalog, made completely or not at all.
///
/// A change with an epoch applies to an unfinished upload whose row has no higher epoch. In all other cases it changes
/// nothing and fails with ``StoreError/superseded``.
package enum CatalogChange: Sendable {
    case insert(CatalogRow)
    case advance(Advance)
    /// The target resource is about to run and must not run again.
    case markProcessing(UploadID, epoch: Int64)
    case intend(UploadID, epoch: Int64, PublicationIntent)
    /// The publication that was decided could not be made durable: its names are restored, and it is not tried again.
    case withdraw(UploadID, epoch: Int64)
    case complete(Completion)
    case invalidate(Invalidation)
    /// Removes rows of unfinished and finished uploads, except those with a higher epoch.
    case delete([Removal])
    /// Removes finished uploads that have expired, the oldest first, at most `limit`.
    case removeFinished(expiredBy: Int64, limit: Int)
    /// `ending` removes the row of a publication without an upload, which led to the file.
    case recordFile(FileRecord, ending: Removal?)
    case removeFiles([String])
    case recordTime(LifetimeClock.Mark)
    /// Uploads that would expire later expire at this time, at most `limit` finished and as many unfinished ones.
    case limitExpiry(to: Int64, limit: Int)
    /// Proves that a change can be made durable.
    case probe

    package struct Removal: Sendable {
        package var id: UploadID
        package var epoch: Int64
    }

    /// Bytes up to `offset` are durable. Brings the upload back to receiving; the offset never goes down.
    package struct Advance: Sendable {
        package var id: UploadID
        package var epoch: Int64
        package var offset: Int64
        package var length: Int64?
        package var digestStates: [[UInt8]]
    }

    /// The final response, and the published file that the quota counts from now on.
    package struct Completion: Sendable {
        package var id: UploadID
        package var epoch: Int64
        package var offset: Int64
        package var response: Response
        package var expiresAt: Int64?
        package var file: FileRecord?
        /// The part of the creation that the finished upload keeps.
        package var upload: NewUpload
    }

    /// Marks an upload as invalid: no request can continue it.
    package struct Invalidation: Sendable {
        package var id: UploadID
        package var epoch: Int64
        package var reason: String
        package var expiresAt: Int64?
        /// The part of the creation that the finished upload keeps.
        package var upload: NewUpload
    }
}
