import SystemCalls

extension UploadStore {
    /// Opens the store of a data directory, which is made if it is missing: rows in SQLite, bytes in files.
    ///
    /// - Parameter root: path of the data directory. All parts lie in one file system; one store at a time has it.
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
