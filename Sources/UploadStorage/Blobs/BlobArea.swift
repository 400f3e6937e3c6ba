import HTTPSemantics
import SystemCalls

/// Returns the next name of an iteration; `nil` after the last one.
package typealias BlobNames = () throws(Errno) -> String?

/// The storage of bytes: those of unfinished uploads, under names that the store chooses, and the published files.
///
/// Files are published by a ``PublishingBlobArea``, or by the catalog of the store: see ``CatalogChange/Naming``.
package protocol BlobArea: Sendable {
    /// Creates an empty blob with this name.
    func create(_ name: String) throws(Errno) -> any Blob
    /// Opens the blob with this name.
    func open(_ name: String) throws(Errno) -> any Blob
    /// Removes the blob with this name; does nothing if there is none.
    func remove(_ name: String) throws(Errno)
    /// The number of blobs that are retained, because they are the content of requests whose outcome is unknown.
    func retainedCount() throws(Errno) -> Int
    /// Returns an iterator over the names of the blobs of unfinished uploads, in no particular order. It may return
    /// names that are created or removed during the iteration.
    func names() throws(Errno) -> BlobNames
    /// Returns the number of bytes of an unfinished upload under this name; `nil` if there are none.
    func size(of name: String) throws(Errno) -> Int64?
    /// Returns the total and the free space of the storage.
    func space() throws(Errno) -> FileSystemSpace
    /// Writes a test file, makes it durable and removes it.
    func probe() throws(Errno)

    /// Throws `pathTooLong` if no file can have this name, whatever files exist.
    func requirePossible(_ name: PublishedName) throws(StoreError)
    /// Opens a published file. Throws `notFound`, `targetIsDirectory` or `parentIsFile`; `targetIsSpecial` if the name
    /// belongs to anything else that is not a regular file.
    func openPublished(_ name: PublishedName) throws(StoreError) -> PublishedBlob
    /// Returns whether a file has this name. Opens only the directory, not the file.
    func isPublished(_ name: PublishedName) throws(StoreError) -> Bool
    /// Makes the missing directories of the path of a name. If `durably` is true, these directories, and those that
    /// other threads have just made, are on stable storage on return. Throws the same errors as ``openPublished(_:)``.
    func makeDirectories(for name: PublishedName, durably: Bool) throws(StoreError)
    /// Opens a directory. Throws `notFound`, or `parentIsFile` if the name or a part of its path is not a directory.
    func openDirectory(_ directory: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory
    /// Removes a published file, durably. Throws `notFound` if there is none, and `preconditionFailed` if the file has
    /// another entity tag, which an area that only one process uses need not compare.
    func removePublished(_ name: PublishedName, tagged tag: String) throws(StoreError)
    /// Releases the area for other processes.
    func close()
}

extension BlobArea {
    package func requirePossible(_ name: PublishedName) throws(StoreError) {}
}

/// The opened bytes of one upload. Safe to use from any thread.
package protocol Blob: Sendable {
    /// Writes a prefix of `bytes` at the offset and returns its length. It is 0 if the blob has no room for more bytes at
    /// the moment: then call ``awaitRoom()`` and write again.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Waits until there is room for more bytes, or a short time has passed. Errors are reported by
    /// ``write(_:at:)``.
    func awaitRoom()
    /// Reads bytes from the offset on and returns their number, which is smaller than the buffer only at the end.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int
    /// Starts to write a range to stable storage. Errors are not reported here, but by ``synchronize(including:)``.
    func startWriteBack(at offset: Int64, count: Int64)
    /// Waits until a range has been written from the cache to the disk. Errors are reported by
    /// ``synchronize(including:)``.
    func awaitWriteBack(at offset: Int64, count: Int64)
    /// Returns an error if ``synchronize(including:)`` would probably fail, because the storage of all blobs has failed
    /// after `time` (monotonic nanoseconds), and has not worked after that failure; otherwise `nil`.
    func failure(since time: Int64) -> Errno?
    /// Returns once all bytes, and `detail` if it is not `nil`, are on stable storage.
    func synchronize(including detail: BlobDetail?) throws(Errno)
    /// Removes copies of stored bytes from memory, so that they are read from the storage.
    func dropCopy()
    func size() throws(Errno) -> Int64
    func truncate(to size: Int64) throws(Errno)
    /// Returns a text that identifies these bytes, whatever their name is.
    func identity() throws(Errno) -> String
    /// Sets the modification time, in nanoseconds since 1970.
    func setModified(_ nanoseconds: Int64) throws(Errno)
    func attributes() throws(Errno) -> PublishedFile.Attributes
    /// Opens the bytes again, at offset 0 and only for reading; `nil` if they are not in a local file.
    func openForReading() throws(Errno) -> FileDescriptor?
}

extension Blob {
    package func awaitRoom() {}
    package func failure(since time: Int64) -> Errno? { nil }
    package func dropCopy() {}
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
    /// Returns a second descriptor of the file, which the caller owns and closes; `nil` if the bytes are not in a local
    /// file.
    func duplicateForSending() throws(Errno) -> Int32?
    /// Returns a URL with which the client reads the bytes from another server for a minute; `nil` if there is none.
    /// - Parameter fields: fields that the response of the other server has.
    func downloadURL(with fields: Fields) throws(Errno) -> String?
}

extension PublishedContent {
    package func downloadURL(with fields: Fields) throws(Errno) -> String? { nil }
}

/// A directory of published files that is read in steps. Use it from one thread at a time.
package protocol PublishedDirectory: AnyObject {
    /// Calls `body` with the bytes of the next name, in the order of the file system; returns `nil` at the end. Names
    /// that belong neither to files nor to directories may be included.
    func nextName<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(Errno) -> Result?
    /// Prepares ``nextName(_:)`` to return the names that begin with `prefix` and come after `name` in the order of their
    /// bytes, perhaps followed by other names. Returns false if the directory has another order; then nothing changes.
    func seek(after name: String?, prefix: String) -> Bool
    /// Identifies a directory that probably has thousands of entries, whatever its path is; `nil` if it is smaller, or
    /// if its changes cannot be observed.
    var identityIfLarge: String? { get }
    /// Starts to observe the names of the directory. Names that ``nextName(_:)`` has returned already are not observed.
    func watch() throws(Errno) -> DirectoryWatch
    /// Returns the file or directory that has this name now; `nil` if there is none.
    func entry(_ name: String) throws(Errno) -> PublishedEntry?
}

extension PublishedDirectory {
    package func seek(after name: String?, prefix: String) -> Bool { false }
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
