import SystemCalls

extension UploadStore {
    /// Opens the store of a data directory, and creates the directory if it is missing. Rows are stored in SQLite,
    /// bytes in files.
    ///
    /// - Parameter root: the path of the data directory. All its parts must be in one file system. Only one store at a
    ///   time can use it.
    /// - Throws: `inUse`, `newerSchema`, `foreignData`, `damaged` or `unusableRoot` if the directory cannot be used, `io` if a
    ///   system call fails, and `cannotStartThread`.
    public static func open(root: String, configuration: StoreConfiguration = StoreConfiguration()) throws(StoreError)
        -> UploadStore
    {
        let directory = try DataDirectory(path: root)
        let catalog = try SQLiteCatalog(
            path: root + "/" + DataDirectory.catalogName, durability: configuration.durability)
        try directory.secure()
        let area = try startingThreads { () throws(Errno) in try FileBlobArea(directory) }
        return try UploadStore(catalog: catalog, area: area, location: root, configuration: configuration)
    }
}

extension UploadStore {
    /// Creates a store in memory, for tests. Its uploads and files are lost when it is closed.
    /// - Parameter configuration: the limits and times.
    /// - Throws: `StoreError` if the system cannot create a thread for the store.
    public static func inMemory(
        configuration: StoreConfiguration = StoreConfiguration()
    ) throws(StoreError) -> UploadStore {
        try UploadStore(catalog: MemoryCatalog(), area: MemoryBlobArea(), configuration: configuration)
    }
}
