import SystemCalls

package typealias BlobNames = () throws(Errno) -> String?

/// The storage of bytes: those of unfinished uploads, under names that the store chooses, and the published files.
package protocol BlobArea: Sendable {
    /// Creates empty bytes under a name.
    func create(_ name: String) throws(Errno) -> any Blob
    func open(_ name: String) throws(Errno) -> any Blob
    /// Removes the bytes of this name; does nothing if there are none.
    func remove(_ name: String) throws(Errno)
    /// Returns an iterator over the names of bytes of unfinished uploads, in no order. Names that are created or removed
    /// meanwhile may be among them.
    func names() throws(Errno) -> BlobNames
    /// Returns the number of bytes of an unfinished upload under this name; nil if there are none.
    func size(of name: String) throws(Errno) -> Int64?
    func space() throws(Errno) -> FileSystemSpace
    /// Writes a test file, makes it durable and removes it.
    func probe() throws(Errno)

    /// Opens a published file. Throws `notFound`, `targetIsDirectory` or `parentIsFile`, or `targetIsSpecial` for anything else.
    func openPublished(_ name: PublishedName) throws(StoreError) -> PublishedBlob
    /// Returns whether a file has this name. Only its directory is opened.
    func isPublished(_ name: PublishedName) throws(StoreError) -> Bool
    /// Makes the directories that a name needs. `durably`: they, and those that others have just made, are on stable
    /// storage on return. Throws as ``openPublished(_:)``.
    func makeDirectories(for name: PublishedName, durably: Bool) throws(StoreError)
    /// Throws if bytes cannot be moved to this name: it is in another file system, or in a
    /// directory that cannot be written.
    func requirePublishable(_ name: PublishedName) throws(StoreError)
    /// Moves bytes to their published name in one step, into a directory that exists. Nothing is durable yet. A file that
    /// is replaced gets the old name of the bytes, as far as the file system can exchange names: ``remove(_:)`` it.
    /// Throws `preconditionFailed` if the name exists and may not be replaced, else as ``openPublished(_:)``.
    /// - Returns: for ``synchronizePublication(_:of:since:)``.
    func publish(_ name: String, as published: PublishedName, replacing: Bool) throws(StoreError)
        -> SynchronizationEpoch
    /// Publishes bytes once more that have their published name since another life of the store, of which it is unknown whether
    /// it failed to make that durable: names and time are written again. Nothing is durable yet. Cut off at any point it leaves
    /// the bytes under one of the two names. Throws `preconditionFailed` if another file has got the name meanwhile.
    /// - Parameters:
    ///   - name: of the bytes before the publication; now of the file that was replaced, or free.
    ///   - modified: nanoseconds since 1970.
    /// - Returns: for ``synchronizePublication(_:of:since:)``.
    func republish(_ published: PublishedName, from name: String, modified: Int64) throws(StoreError)
        -> SynchronizationEpoch
    /// Returns once a publication is durable: the attributes of the file and its name, new and old.
    ///
    /// After a failure no repetition proves anything: ``withdraw(_:to:)``.
    /// - Parameters:
    ///   - blob: the bytes, opened before they were published; nil: they were published in another life of the store.
    ///   - epoch: from before the names were changed.
    func synchronizePublication(
        _ name: PublishedName, of blob: (any Blob)?, since epoch: SynchronizationEpoch
    ) throws(StoreError)
    /// Withdraws a publication that has its name: the file that was replaced gets the name again, if it still exists, and
    /// the bytes their old one; otherwise the name is removed. Nothing is durable yet. Not safe to repeat: a second exchange
    /// would publish the bytes again.
    /// - Returns: for ``synchronizeWithdrawal(_:since:)``.
    func withdraw(_ published: PublishedName, to name: String) throws(StoreError) -> SynchronizationEpoch
    /// Returns once the names are durable, even if the directory of the published name does not exist.
    func synchronizeWithdrawal(_ published: PublishedName, since epoch: SynchronizationEpoch) throws(StoreError)
    /// The current epoch.
    var synchronizationEpoch: SynchronizationEpoch { get }
    /// Opens a directory. Throws `notFound`, or `parentIsFile` if the name or a part of its path is not a directory.
    func openDirectory(_ directory: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory
    /// Removes a published file, durably.
    func removePublished(_ name: PublishedName) throws(StoreError)
    /// Releases the area for other processes.
    func close()
}

/// The bytes of one upload, open. Safe to use from any thread.
package protocol Blob: Sendable {
    /// Writes a prefix of `bytes` at the offset and returns its length, at least 1.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Reads from the offset on; fewer bytes than the buffer holds only at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Starts to write a range to stable storage. It reports no errors.
    func startWriteBack(at offset: Int64, count: Int64)
    /// Waits until a range has left the cache. ``synchronize(includingName:)`` reports errors.
    func awaitWriteBack(at offset: Int64, count: Int64)
    /// Returns once all bytes are on stable storage, and their name if `includingName`.
    func synchronize(includingName: Bool) throws(Errno)
    /// Returns once bytes and attributes are on stable storage.
    func synchronizeWithAttributes() throws(Errno)
    func size() throws(Errno) -> Int64
    func truncate(to size: Int64) throws(Errno)
    /// Returns a text that identifies these bytes, whatever their name is.
    func identity() throws(Errno) -> String
    /// Sets the modification time, in nanoseconds since 1970.
    func setModified(_ nanoseconds: Int64) throws(Errno)
    func attributes() throws(Errno) -> PublishedFile.Attributes
}

/// A published file that the blob area has opened.
package struct PublishedBlob: Sendable {
    /// The ``Blob/identity()`` that the bytes had before they were published.
    package var identity: String
    package var file: PublishedFile
}

/// The bytes of a published file, open.
package protocol PublishedContent: Sendable {
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Nil if the bytes are in no local file.
    func duplicateDescriptor() throws(Errno) -> FileDescriptor?
}

/// A directory of published files that is read in steps. Used by one thread at a time.
package protocol PublishedDirectory: AnyObject {
    /// Calls `body` with the bytes of the next name, in the order of the file system; returns nil at the end. Names that
    /// belong neither to files nor to directories may be among them.
    func nextName<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(Errno) -> Result?
    /// Returns the file or directory that has this name now; nil if there is none.
    func entry(_ name: String) throws(Errno) -> PublishedEntry?
}

/// One entry of a directory of published files.
package struct PublishedEntry: Sendable, Hashable {
    package var name: String
    package var isDirectory: Bool
    /// Bytes; 0 for directories.
    package var size: Int64
    /// The modification time, in seconds since 1970.
    package var modifiedSeconds: Int64

    package init(name: String, isDirectory: Bool, size: Int64, modifiedSeconds: Int64) {
        self.name = name
        self.isDirectory = isDirectory
        self.size = size
        self.modifiedSeconds = modifiedSeconds
    }
}
