import SystemCalls

package typealias BlobNames = () throws(Errno) -> String?

/// Where the bytes are: those of unfinished uploads under names of the store's choice, and the published files.
package protocol BlobArea: Sendable {
    /// New and empty.
    func create(_ name: String) throws(Errno) -> any Blob
    func open(_ name: String) throws(Errno) -> any Blob
    /// Does nothing where there is none.
    func remove(_ name: String) throws(Errno)
    /// The names of bytes of unfinished uploads, one with each call, in no order; nil after the last one. Those that come
    /// or go meanwhile may be among them.
    func names() throws(Errno) -> BlobNames
    /// Bytes of unfinished upload under this name; nil if there are none.
    func size(of name: String) throws(Errno) -> Int64?
    func space() throws(Errno) -> FileSystemSpace
    /// Writes something, makes it durable and removes it.
    func probe() throws(Errno)

    /// Throws `notFound`, `targetIsDirectory`, `parentIsFile`, or `targetIsSpecial` where the name is something else.
    func openPublished(_ name: PublishedName) throws(StoreError) -> PublishedBlob
    /// Whether a file has this name; nothing is opened for that but its directory.
    func isPublished(_ name: PublishedName) throws(StoreError) -> Bool
    /// Makes the directories that a name needs. `durably`: they, and those that others have just made, are on stable
    /// storage on return. Throws as ``openPublished(_:)``.
    func makeDirectories(for name: PublishedName, durably: Bool) throws(StoreError)
    /// Throws where bytes cannot be moved to this name whatever is tried: it lies in another file system, or in a
    /// directory that cannot be written.
    func requirePublishable(_ name: PublishedName) throws(StoreError)
    /// Moves bytes to their published name in one step, into a directory that exists. Nothing is durable yet. A file that
    /// is replaced gets the old name of the bytes, as far as the file system can exchange names: ``remove(_:)`` it.
    /// Throws `preconditionFailed` where the name exists and may not be replaced, else as ``openPublished(_:)``.
    /// - Returns: for ``synchronizePublication(_:of:since:)``.
    func publish(_ name: String, as published: PublishedName, replacing: Bool) throws(StoreError)
        -> SynchronizationEpoch
    /// Publishes bytes once more that have their published name since another life of the store, of which nobody knows whether
    /// it failed to make that durable: names and time are changed anew. Nothing is durable yet. Cut off at any point it leaves
    /// the bytes under one of the two names. Throws `preconditionFailed` if the name has been taken meanwhile.
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
    /// Returns once the names are durable as they are, also where the directory of the published one does not exist.
    func synchronizeWithdrawal(_ published: PublishedName, since epoch: SynchronizationEpoch) throws(StoreError)
    /// The epoch now.
    var synchronizationEpoch: SynchronizationEpoch { get }
    /// Throws `notFound`, or `parentIsFile` if the name or a part of its path is no directory.
    func openDirectory(_ directory: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory
    /// Durable on return.
    func removePublished(_ name: PublishedName) throws(StoreError)
    /// Lets others use the area.
    func close()
}
