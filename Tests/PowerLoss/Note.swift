import HTTPSemantics
import ResumableUpload

/// What a client was told, or what had begun and may therefore be found, told or not.
enum Note {
    /// The name of the upload was told.
    case created(upload: Int)
    case acknowledged(upload: Int, offset: Int64)
    /// A final response, a deactivation or a removal may be on its way.
    case endBegan(upload: Int)
    /// The target was told of the upload, and must never be told again.
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
