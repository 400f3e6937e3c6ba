import SystemCalls

extension UploadStore {
    /// Opens a published file. `notFound` if there is none, `targetIsDirectory` if the name is a directory,
    /// `targetIsSpecial` if it is a link or something else that is no file, `parentIsFile` if it is below a file.
    public func publishedFile(_ name: PublishedName) throws(StoreError) -> PublishedFile {
        let found = try area.openPublished(name)
        guard let record = try catalog.file(name.path), record.describes(found), !record.fields.isEmpty else {
            return found.file
        }
        return found.file.described(by: record.fields)
    }

    /// Reads a directory in the order of the file system, an entry at a time. Throws `notFound` if there is none.
    package func listing(of directory: PublishedName.Directory) throws(StoreError) -> PublishedListing {
        PublishedListing(try openDirectory(directory))
    }

    /// The entries of a directory whose names come after `cursor` in the order of their bytes, the first `limit` of them.
    ///
    /// The directory is read to its end for each page, and the names of one page are kept. A name that is present during
    /// the reading of all pages is on exactly one of them, whatever is made and removed meanwhile.
    /// - Parameter cursor: nil: from the start. It need not be the name of an entry.
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
            // Counted a little too long if this fails: the sweep finds it.
            _ = try? forgetFile(name)
        }
    }
}
