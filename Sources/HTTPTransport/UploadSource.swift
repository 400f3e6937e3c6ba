import SystemCalls

/// The bytes of a representation that is uploaded, readable at any offset that the server has not acknowledged.
///
/// The source is read on the thread of all transfers of a client: a read that blocks for long delays all of them.
public protocol UploadSource: Sendable {
    /// The length of the representation in bytes; `nil` if it is unknown until the end is reached.
    var length: Int64? { get }

    /// Fills the beginning of `buffer` with the bytes from `offset` on.
    ///
    /// - Parameters:
    ///   - buffer: the buffer from which the bytes are sent, without another copy. It is never empty.
    ///   - offset: in bytes. It is never less than an offset that was acknowledged.
    /// - Returns: the number of bytes that were read, at least one; 0 only at the end of the representation.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int

    /// Called when the server has acknowledged all bytes before `offset`. The upload does not read them again.
    /// - Parameter offset: in bytes. It never decreases.
    func acknowledged(upTo offset: Int64)
}

/// A source of bytes that are in memory.
package struct BytesSource: UploadSource {
    let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package var length: Int64? { Int64(bytes.count) }

    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        let part = bytes.dropFirst(Int(clamping: offset)).prefix(buffer.count)
        buffer.copyBytes(from: part)
        return part.count
    }

    package func acknowledged(upTo offset: Int64) {}
}

/// A source whose next bytes may not exist yet.
package protocol GrowingSource: UploadSource {
    /// Reads bytes without waiting.
    /// - Parameter wake: called once, on any thread, after this function has returned `nil`: as soon as the byte exists,
    ///   or the source has ended before it.
    /// - Returns: as ``UploadSource/read(into:at:)``; `nil` if the byte at `offset` does not exist yet.
    func read(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64, orCall wake: @escaping @Sendable () -> Void
    ) throws(SourceError) -> Int?

    /// Whether ``read(into:at:orCall:)`` would return a number or throw an error, not return `nil`.
    /// - Parameter wake: as for that function.
    func isReadable(at offset: Int64, orCall wake: @escaping @Sendable () -> Void) -> Bool

    /// The error because of which the source ends before the representation is complete; `nil` if there is none.
    var failure: (any Error)? { get }

    /// Called when no bytes will be read any more.
    func close()
}

/// The reason why a source could not be read. The upload ends, and its resource is deleted on the server. ``changed``
/// becomes ``TransferError/Code/sourceChanged``, any other reason ``TransferError/Code/sourceUnavailable``.
public enum SourceError: Error, Sendable {
    /// The source has no bytes at this offset, but the upload needs them: the file has become shorter, or the source is
    /// a stream that cannot be read again.
    case unavailable(at: Int64)
    /// The system could not read the source. The associated value is the ``TransferError/underlying`` error.
    case system(Errno)
    /// The source could not be read for another reason. The associated value is the ``TransferError/underlying`` error.
    case failed(any Error)
    /// The source has changed since the upload began.
    case changed
}

extension SourceError: Hashable {
    /// Whether both are the same reason. Errors of ``failed(_:)`` are compared by their descriptions.
    public static func == (left: SourceError, right: SourceError) -> Bool {
        switch (left, right) {
        case (.unavailable(let left), .unavailable(let right)): left == right
        case (.system(let left), .system(let right)): left == right
        case (.failed(let left), .failed(let right)): "\(left)" == "\(right)"
        case (.changed, .changed): true
        default: false
        }
    }

    /// Hashes the description.
    public func hash(into hasher: inout Hasher) { hasher.combine("\(self)") }
}
