import SystemCalls

/// The bytes of a representation that is uploaded, readable at any offset that the server has not acknowledged.
///
/// It is read on the thread that carries all transfers of a client: a read that blocks for long holds all of them up.
public protocol UploadSource: Sendable {
    /// The length of the representation in bytes; nil if it is not known before the end is reached.
    var length: Int64? { get }

    /// Fills the beginning of `buffer` with the bytes from `offset` on.
    ///
    /// - Parameters:
    ///   - buffer: never empty. It is the transport's own; nothing is copied afterwards.
    ///   - offset: in bytes, never below what was acknowledged.
    /// - Returns: how many bytes were read, at least one; 0 at the end of the representation alone.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int

    /// The server has everything below `offset`: nothing there is read again.
    func acknowledged(upTo offset: Int64)
}

/// Why a source gave no bytes.
public enum SourceError: Error, Sendable, Hashable {
    /// There is nothing at this offset although there should be: a file that has shrunk, a stream that cannot go back.
    case unavailable(at: Int64)
    /// The system could not read it.
    case system(Errno)
    /// It is no longer what it was when the upload was begun.
    case changed
}
