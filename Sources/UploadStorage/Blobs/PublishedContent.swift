import SystemCalls

/// The bytes of a published file, open.
package protocol PublishedContent: Sendable {
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Nil where the bytes are in no local file.
    func duplicateDescriptor() throws(Errno) -> FileDescriptor?
}
