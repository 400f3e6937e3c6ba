import SystemCalls

/// A directory of published files that is read in steps. Used by one thread at a time.
package protocol PublishedDirectory: AnyObject {
    /// Calls `body` with the bytes of the next name, in the order of the file system; nil at the end. Names of things that
    /// are neither files nor directories may be among them.
    func nextName<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(Errno) -> Result?
    /// What has this name now; nil if nothing has, or something that is neither a file nor a directory.
    func entry(_ name: String) throws(Errno) -> PublishedEntry?
}
