import SystemCalls

extension UploadStore {
    /// Opens a published file. Throws `notFound` if there is none, `targetIsDirectory` if the name belongs to a
    /// directory, `targetIsSpecial` if the name belongs to a link or another object that is not a regular file, and
    /// `parentIsFile` if a part of the path before the last segment is a file.
    public func publishedFile(_ name: PublishedName) throws(StoreError) -> PublishedFile {
        let found = try area.openPublished(name)
        let record = try context.fileRecords.record(of: found, named: name.path) { (path) throws(StoreError) in
            try catalog.file(path)
        }
        guard let record, !record.fields.isEmpty else { return found.file }
        return found.file.described(by: record.fields)
    }

    /// Reads a directory in the order of the file system, one entry at a time. Throws `notFound` if the directory does
    /// not exist.
    package func listing(of directory: PublishedName.Directory) throws(StoreError) -> PublishedListing {
        PublishedListing(try openDirectory(directory))
    }

    /// Returns the first `limit` entries of a directory whose names come after `cursor` in the order of their bytes.
    ///
    /// The directory is read to its end for each page, and only the names of one page are kept. A name that exists
    /// while all pages are read is on exactly one of them, even if other names are created or removed meanwhile.
    /// - Parameter cursor: the name after which the page begins; nil for the first page. It need not be the name of an
    ///   entry.
    package func page(
        of directory: PublishedName.Directory, after cursor: String?, limit: Int
    ) throws(StoreError) -> PublishedListing {
        let directory = try openDirectory(directory)
        var selection = NameSelection(after: cursor, limit: limit)
        try translating("list a directory") { () throws(Errno) in
            while try directory.nextName({ selection.offer($0) }) != nil {}
        }
        return PublishedListing(directory, selection)
    }

    private func openDirectory(_ name: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory {
        do throws(StoreError) {
            return try area.openDirectory(name)
        } catch {
            throw error == .parentIsFile ? .notFound : error
        }
    }

    /// Removes a published file if it meets the condition; otherwise throws ``StoreError/preconditionFailed``.
    public func remove(
        _ name: PublishedName, if condition: (PublishedFile.Attributes) -> Bool = { _ in true }
    ) throws(StoreError) {
        if registry.isClosed { throw .superseded }
        try registry.withName(name) { () throws(StoreError) in
            guard condition(try publishedFile(name).attributes) else { throw .preconditionFailed }
            try area.removePublished(name)
            // If this fails, the file is counted until the next sweep.
            _ = try? removeFileRecord(name)
        }
    }
}
