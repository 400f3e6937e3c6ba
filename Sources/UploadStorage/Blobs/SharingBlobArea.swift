/// A blob area whose bytes are files of this machine, so that another program can get them by their path. A storage pair
/// without local files does not conform to this protocol, and refuses ``StoreConfiguration/handoverDirectories``.
package protocol SharingBlobArea: BlobArea {
    /// Verifies that files can be shared in all of these directories, and removes the files that ended processes have
    /// left there.
    /// - Parameters:
    ///   - directories: absolute paths.
    ///   - root: the path of the data directory.
    /// - Throws: `unusableHandover` with the mistakes of all directories.
    func prepare(_ directories: [String], root: String) throws(StoreError)
    /// Ends all writing to complete bytes: from now on no descriptor of this process can write to them, and their file is
    /// read-only.
    func endWriting(_ blob: any Blob) throws(StoreError)
    /// Gives complete bytes a second name in one of the directories.
    /// - Parameter durably: whether the name is on stable storage on return.
    func share(_ name: String, in directory: String, durably: Bool) throws(StoreError) -> SharedFile
}
