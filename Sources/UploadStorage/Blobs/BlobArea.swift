import HTTPSemantics
import SystemCalls

package typealias BlobNames = () throws(Errno) -> String?

/// The storage of bytes: those of unfinished uploads, under names that the store chooses, and the published files.
package protocol BlobArea: Sendable {
    /// Creates an empty blob with this name.
    func create(_ name: String) throws(Errno) -> any Blob
    func open(_ name: String) throws(Errno) -> any Blob
    /// Removes the blob with this name; does nothing if there is none.
    func remove(_ name: String) throws(Errno)
    /// Keeps the bytes with this name under a second name, outside of the names of uploads, together with a description
    /// of them. Both are durable on return. A repeated call has the same result.
    /// - Parameter key: letters and digits.
    func retain(_ name: String, as key: String, description: [UInt8]) throws(Errno)
    /// The number of retained blobs.
    func retainedCount() throws(Errno) -> Int
    /// Returns an iterator over the names of the blobs of unfinished uploads, in no particular order. It may return
    /// names that are created or removed during the iteration.
    func names() throws(Errno) -> BlobNames
    /// Returns the number of bytes of an unfinished upload under this name; nil if there are none.
    func size(of name: String) throws(Errno) -> Int64?
    func space() throws(Errno) -> FileSystemSpace
    /// Writes a test file, makes it durable and removes it.
    func probe() throws(Errno)

    /// Opens a published file. Throws `notFound`, `targetIsDirectory` or `parentIsFile`; `targetIsSpecial` if the name
    /// belongs to anything else that is not a regular file.
    func openPublished(_ name: PublishedName) throws(StoreError) -> PublishedBlob
    /// Returns whether a file has this name. Opens only the directory, not the file.
    func isPublished(_ name: PublishedName) throws(StoreError) -> Bool
    /// Makes the missing directories of the path of a name. If `durably` is true, these directories, and those that
    /// other threads have just made, are on stable storage on return. Throws the same errors as ``openPublished(_:)``.
    func makeDirectories(for name: PublishedName, durably: Bool) throws(StoreError)
    /// Throws if bytes cannot be moved to this name, because it is in another file system or in a directory that cannot
    /// be written.
    func requirePublishable(_ name: PublishedName) throws(StoreError)
    /// Moves bytes to their published name in one step. The directory of that name must exist. The change is not
    /// durable on return. If a file is replaced and the file system can exchange names, the replaced file gets the old
    /// name of the bytes, and the caller must ``remove(_:)`` it. Throws `preconditionFailed` if the published
    /// name belongs to a file that must not be replaced; otherwise the same errors as ``openPublished(_:)``.
    /// - Parameters:
    ///   - tag: the entity tag of the file that is replaced; nil if no file may be replaced. An area that only one process
    ///     uses need not compare it, because the caller has locked the name and evaluated the file.
    ///   - fence: the fence of the hold of the upload; nil if the upload has no row. An area that several stores share
    ///     throws `superseded` if the hold has ended.
    /// - Returns: the epoch for ``synchronizePublication(_:of:since:)``.
    func publish(
        _ name: String, as published: PublishedName, replacing tag: String?, fence: Int64?
    ) throws(StoreError) -> SynchronizationEpoch
    /// Publishes bytes again that were moved to their published name before the store was opened. It is unknown whether
    /// that move became durable, so the names and the modification time are written again. The change is not durable on
    /// return. After an interruption at any point, the bytes have one of the two names. Throws `preconditionFailed` if
    /// another file has the published name now.
    /// - Parameters:
    ///   - name: the name that the bytes had before the publication. Now it belongs to the replaced file, or is free.
    ///   - modified: the new modification time, in nanoseconds since 1970.
    /// - Returns: the epoch for ``synchronizePublication(_:of:since:)``.
    func republish(_ published: PublishedName, from name: String, modified: Int64) throws(StoreError)
        -> SynchronizationEpoch
    /// Returns once a publication is durable: the attributes of the file, its published name, and the change of its old
    /// name.
    ///
    /// After a failure, call ``withdraw(_:to:)``: a later success of this method would not prove that the publication
    /// is durable.
    /// - Parameters:
    ///   - blob: the bytes, opened before they were published; nil if they were published before the store was opened.
    ///   - epoch: the epoch from before the names were changed.
    func synchronizePublication(
        _ name: PublishedName, of blob: (any Blob)?, since epoch: SynchronizationEpoch
    ) throws(StoreError)
    /// Whether files are published faster together, because one call synchronizes them all.
    var canSynchronizeTogether: Bool { get }
    /// Returns once the bytes and attributes of these blobs are on stable storage. Not more than one if
    /// ``canSynchronizeTogether`` is false. After a failure, those of all are unknown.
    func synchronize(_ blobs: [any Blob]) throws(Errno)
    /// Returns once the entries of published files in their directories are durable. After a failure, call
    /// ``withdraw(_:to:)`` for each.
    /// - Parameter epoch: the epoch from before the first name was changed.
    func synchronizeNames(_ names: [PublishedName], since epoch: SynchronizationEpoch) throws(StoreError)
    /// Withdraws a publication whose bytes have their published name. If the replaced file still exists, it gets that
    /// name again, and the bytes get their old name. Otherwise the published name is removed. The change is not durable
    /// on return. Do not repeat this call: a second exchange would publish the bytes again.
    /// - Returns: the epoch for ``synchronizeWithdrawal(_:since:)``.
    func withdraw(_ published: PublishedName, to name: String) throws(StoreError) -> SynchronizationEpoch
    /// Withdraws a publication as soon as the area can be reached, unless the upload of the bytes has a row. Does nothing
    /// in an area that only one process uses: there a publication can be withdrawn at once, or the file remains.
    func withdrawUnrecorded(_ published: PublishedName, of name: String)
    /// Returns once the names that ``withdraw(_:to:)`` changed are durable. The directory of the published name need
    /// not exist.
    func synchronizeWithdrawal(_ published: PublishedName, since epoch: SynchronizationEpoch) throws(StoreError)
    /// The current epoch.
    var synchronizationEpoch: SynchronizationEpoch { get }
    /// Opens a directory. Throws `notFound`, or `parentIsFile` if the name or a part of its path is not a directory.
    func openDirectory(_ directory: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory
    /// Removes a published file, durably. Throws `notFound` if there is none, and `preconditionFailed` if the file has
    /// another entity tag, which an area that only one process uses need not compare.
    func removePublished(_ name: PublishedName, tagged tag: String) throws(StoreError)
    /// Releases the area for other processes.
    func close()
}

extension BlobArea {
    package func withdrawUnrecorded(_ published: PublishedName, of name: String) {}
}

/// The opened bytes of one upload. Safe to use from any thread.
package protocol Blob: Sendable {
    /// Writes a prefix of `bytes` at the offset and returns its length, at least 1.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Reads bytes from the offset on and returns their number, which is smaller than the buffer only at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Starts to write a range to stable storage. Errors are not reported here, but by ``synchronize(including:)``.
    func startWriteBack(at offset: Int64, count: Int64)
    /// Waits until a range has been written from the cache to the disk. Errors are reported by
    /// ``synchronize(including:)``.
    func awaitWriteBack(at offset: Int64, count: Int64)
    /// Returns once all bytes, and `detail` if it is not nil, are on stable storage.
    func synchronize(including detail: BlobDetail?) throws(Errno)
    func size() throws(Errno) -> Int64
    func truncate(to size: Int64) throws(Errno)
    /// Returns a text that identifies these bytes, whatever their name is.
    func identity() throws(Errno) -> String
    /// Sets the modification time, in nanoseconds since 1970.
    func setModified(_ nanoseconds: Int64) throws(Errno)
    func attributes() throws(Errno) -> PublishedFile.Attributes
    /// Opens the bytes again, at offset 0 and only for reading; nil if they are not in a local file.
    func openForReading() throws(Errno) -> FileDescriptor?
}

/// The attributes of a blob that can be made durable together with its bytes.
package enum BlobDetail: Sendable {
    /// The name of the bytes in the directory of unfinished uploads.
    case name
    /// The modification time, and other attributes.
    case attributes
}

/// A published file that the blob area has opened.
package struct PublishedBlob: Sendable {
    /// The ``Blob/identity()`` that the bytes had before they were published.
    package var identity: String
    package var file: PublishedFile

    package init(identity: String, file: PublishedFile) {
        self.identity = identity
        self.file = file
    }
}

/// The opened content of a published file.
package protocol PublishedContent: Sendable {
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Returns a second descriptor of the file, which the caller owns and closes; nil if the bytes are not in a local
    /// file.
    func duplicateForHandover() throws(Errno) -> Int32?
    /// Returns a URL with which the client reads the bytes from another server for a minute; nil if there is none.
    /// - Parameter fields: fields that the response of the other server has.
    func downloadURL(with fields: Fields) throws(Errno) -> String?
}

extension PublishedContent {
    package func downloadURL(with fields: Fields) throws(Errno) -> String? { nil }
}

/// A directory of published files that is read in steps. Use it from one thread at a time.
package protocol PublishedDirectory: AnyObject {
    /// Calls `body` with the bytes of the next name, in the order of the file system; returns nil at the end. Names
    /// that belong neither to files nor to directories may be included.
    func nextName<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(Errno) -> Result?
    /// Prepares ``nextName(_:)`` to return the names that begin with `prefix` and come after `name` in the order of their
    /// bytes, perhaps followed by other names. Returns false if the directory has another order; then nothing changes.
    func begin(after name: String?, prefix: String) -> Bool
    /// Identifies a directory that probably has thousands of entries, whatever its path is; nil if it is smaller, or if
    /// its changes cannot be observed.
    var identityIfLarge: String? { get }
    /// Starts to observe the names of the directory. Names that ``nextName(_:)`` has returned already are not observed.
    func watch() throws(Errno) -> DirectoryWatch
    /// Returns the file or directory that has this name now; nil if there is none.
    func entry(_ name: String) throws(Errno) -> PublishedEntry?
}

extension PublishedDirectory {
    package func begin(after name: String?, prefix: String) -> Bool { false }
}

/// One entry of a directory of published files.
package struct PublishedEntry: Sendable, Hashable {
    package var name: String
    package var isDirectory: Bool
    /// The size in bytes; 0 for directories.
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
