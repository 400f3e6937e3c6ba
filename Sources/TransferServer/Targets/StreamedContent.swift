/// Content of a response that is produced while it is sent.
///
/// The server asks for the next bytes when the connection has room for them, so that a client that does not read holds up
/// the production, and no more than one piece is in memory. All calls come one at a time. The object is released when the
/// response was sent or its connection has ended, and is never asked if the request is `HEAD`.
public protocol StreamedContent: AnyObject, Sendable {
    /// Writes the next bytes to the start of `buffer`, which has room for at least one, and returns their number; 0 is the
    /// end of the content.
    /// - Throws: anything. The client then gets a message that is visibly incomplete, and the error is logged.
    func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int
}
