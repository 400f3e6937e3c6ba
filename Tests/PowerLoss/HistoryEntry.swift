import HTTPSemantics
import ResumableUpload

/// A result that was reported to a client, or an operation that has begun and may therefore have taken effect.
enum HistoryEntry {
    /// The URL of the upload was reported. An upload that is recorded late may be missing after a crash until more is
    /// reported.
    case created(upload: Int, isRecorded: Bool)
    /// An offset was reported, or the store was closed properly. After this entry the upload must exist.
    case confirmed(upload: Int)
    case acknowledged(upload: Int, offset: Int64)
    /// A final response, a deactivation or a removal has begun.
    case endBegan(upload: Int)
    /// The target resource got the upload, and must never get it again.
    case targetRan(upload: Int)
    case answered(upload: Int, Response)
    case cancellationBegan(upload: Int)
    case gone(upload: Int)
    /// The clock shows this time from here on, in seconds since 1970.
    case time(Int64)
    /// The clock has reached a time at which a sweep may delete the upload.
    case expired(upload: Int)
    case publicationBegan(upload: Int)
    case published(upload: Int)
    case removalBegan(name: Int)
    case removed(name: Int)
}
