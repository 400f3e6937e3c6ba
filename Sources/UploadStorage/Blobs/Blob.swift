import SystemCalls

/// The bytes of one upload, open. Safe to use from any thread.
package protocol Blob: Sendable {
    /// Writes a prefix of `bytes` at the offset and returns its length, at least 1.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Reads from the offset on; fewer bytes than the buffer holds only at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Starts to move a range to stable storage. No promise, so it cannot fail.
    func startWriteBack(at offset: Int64, count: Int64)
    /// Waits until a range has left the cache. No promise, so it cannot fail: ``synchronize(includingName:)`` tells.
    func awaitWriteBack(at offset: Int64, count: Int64)
    /// Returns once all bytes are on stable storage, and the name under which they are found again.
    func synchronize(includingName: Bool) throws(Errno)
    /// Returns once bytes and attributes are on stable storage.
    func synchronizeWithAttributes() throws(Errno)
    func size() throws(Errno) -> Int64
    func truncate(to size: Int64) throws(Errno)
    /// Tells these bytes from all others that exist, under whatever name.
    func identity() throws(Errno) -> String
    /// Sets the time of the last change, in nanoseconds since 1970.
    func setModified(_ nanoseconds: Int64) throws(Errno)
    func attributes() throws(Errno) -> PublishedFile.Attributes
}
