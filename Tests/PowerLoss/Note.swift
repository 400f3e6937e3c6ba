import HTTPSemantics
import ResumableUpload

/// What was reported to a client, or what had begun and may therefore be found, reported or not.
enum Note {
    /// The name of the upload was reported.
    case created(upload: Int)
    case acknowledged(upload: Int, offset: Int64)
    /// A final response, a deactivation or a removal may be on its way.
    case endBegan(upload: Int)
    /// The target resource got the upload, and must never get it again.
    case targetRan(upload: Int)
    case answered(upload: Int, Response)
    case gone(upload: Int)
    /// Seconds since 1970 from here on.
    case time(Int64)
    /// The clock has come so far that it may be swept.
    case expired(upload: Int)
    case publicationBegan(upload: Int)
    case published(upload: Int)
    case removalBegan(name: Int)
    case removed(name: Int)
}
