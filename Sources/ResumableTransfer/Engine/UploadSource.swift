import SystemCalls

/// The bytes of a representation that is uploaded, readable at any offset that the server has not acknowledged.
///
/// The source is read on the thread of all transfers of a client: a read that blocks for long delays all of them.
public protocol UploadSource: Sendable {
    /// The length of the representation in bytes; nil if it is not known before the end is reached.
    var length: Int64? { get }

    /// Fills the beginning of `buffer` with the bytes from `offset` on.
    ///
    /// - Parameters:
    ///   - buffer: never empty. It is the buffer of the transport: the bytes are not copied again.
    ///   - offset: in bytes, never below what was acknowledged.
    /// - Returns: the number of bytes that were read, at least one; 0 only at the end of the representation.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int

    /// The server has everything below `offset`: nothing there is read again.
    func acknowledged(upTo offset: Int64)
}

/// The reason why a source could not be read.
public enum SourceError: Error, Sendable, Hashable {
    /// There is nothing at this offset although there should be: a file that has shrunk, a stream that cannot go back.
    case unavailable(at: Int64)
    /// The system could not read the source.
    case system(Errno)
    /// The source has changed since the upload began.
    case changed
}
