import SystemCalls

extension StoreCopy.Place {
    /// Opens the data directory of a stopped server.
    ///
    /// - Parameter shouldCreate: whether the directory is created if it is missing; otherwise it must contain a catalog.
    package static func directory(_ root: String, creates shouldCreate: Bool) throws(StoreError) -> StoreCopy.Place {
        if !shouldCreate {
            do throws(Errno) {
                let names = try FileDescriptor.open(root, [.readOnly, .directory]).entryNames()
                guard names.contains(DataDirectory.catalogName) else { throw .noSuchFile }
            } catch {
                throw .unusableRoot("it is not a data directory of onward: \(error)")
            }
        }
        let directory = try DataDirectory(path: root)
        let catalog = try SQLiteCatalog(path: root + "/" + DataDirectory.catalogName, durability: .acknowledged)
        try directory.secure()
        let area = try startingThreads { () throws(Errno) in try FileBlobArea(directory) }
        let reading = SystemClock.reading()
        let clock = LifetimeClock(after: try catalog.timeMark(), at: reading, lifetime: .max)
        return StoreCopy.Place(catalog: catalog, area: area, time: clock.time(at: reading))
    }

    /// Releases the store for servers.
    /// - Parameter isChanged: whether something was copied to it.
    package func close(isChanged: Bool) {
        catalog.close(saving: isChanged ? nil : catalog.savedTotals)
        area.close()
    }
}
