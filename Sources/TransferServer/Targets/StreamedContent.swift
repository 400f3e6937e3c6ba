/// Content of a response that is produced while it is sent.
///
/// The server requests the next bytes when the connection is writable, so that production stops while the client does
/// not read, and only one piece is in memory. There is one call at a time. The object is released when the response was
/// sent or the connection has ended. For `HEAD` it is never called.
public protocol StreamedContent: AnyObject, Sendable {
    /// Writes the next bytes to the start of `buffer`, which is not empty, and returns their number; 0 means the end of
    /// the content.
    /// - Throws: anything. The client then gets a response that it can recognize as incomplete, and the error is
    ///   logged.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int
}
