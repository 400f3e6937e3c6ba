import SystemCalls

/// Why a source gave no bytes.
public enum SourceError: Error, Sendable, Hashable {
    /// There is nothing at this offset although there should be: a file that has shrunk, a stream that cannot go back.
    case unavailable(at: Int64)
    /// The system could not read it.
    case system(Errno)
    /// It is no longer what it was when the upload was begun.
    case changed
}
