import SystemCalls

/// A blob area that gives bytes their published names itself, before the catalog records the end of the upload. Only one
/// store at a time uses it.
package protocol PublishingBlobArea: BlobArea {
    /// Keeps the bytes with this name under a second name, outside the names of uploads, together with a description
    /// of them. Both are durable on return. A repeated call has the same result.
    /// - Parameter key: letters and digits.
    func retain(_ name: String, as key: String, description: [UInt8]) throws(Errno)
    /// Throws if bytes cannot be moved to this name, because it is in another file system or in a directory that cannot
    /// be written.
    func requirePublishable(_ name: PublishedName) throws(StoreError)
    /// Moves bytes to their published name in one step. The directory of that name must exist. The change is not
    /// durable on return. If a file is replaced and the file system can exchange names, the replaced file gets the old
    /// name of the bytes, and the caller must ``remove(_:)`` it. Throws `preconditionFailed` if the published
    /// name belongs to a file that must not be replaced; otherwise the same errors as ``openPublished(_:)``.
    /// - Parameter replaces: whether a file may be replaced. The caller has locked the name and evaluated the file.
    /// - Returns: the epoch for ``synchronizePublication(_:of:since:)``.
    func publish(
        _ name: String, as published: PublishedName, replaces: Bool
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
    ///   - blob: the bytes, opened before they were published; `nil` if they were published before the store was
    ///     opened.
    ///   - epoch: the epoch from before the names were changed.
    func synchronizePublication(
        _ name: PublishedName, of blob: (any Blob)?, since epoch: SynchronizationEpoch
    ) throws(StoreError)
    /// Whether files are published faster together, because one call synchronizes them all.
    var canSynchronizeTogether: Bool { get }
    /// Returns once the bytes and attributes of these blobs are on stable storage. Call it with only one blob if
    /// ``canSynchronizeTogether`` is false. After a failure it is unknown which of the blobs are on stable storage.
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
    /// Returns once the names that ``withdraw(_:to:)`` changed are durable. The directory of the published name need
    /// not exist.
    func synchronizeWithdrawal(_ published: PublishedName, since epoch: SynchronizationEpoch) throws(StoreError)
    /// The current epoch.
    var synchronizationEpoch: SynchronizationEpoch { get }
}
