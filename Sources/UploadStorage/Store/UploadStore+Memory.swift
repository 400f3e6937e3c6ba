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
