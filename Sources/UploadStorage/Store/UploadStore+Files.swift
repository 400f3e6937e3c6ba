extension UploadStore {
    /// Opens a published file. `notFound` where there is none, `targetIsDirectory` where the name is a directory,
    /// `targetIsSpecial` where it is a link or another thing that is no file, `parentIsFile` where it is below a file.
    public func publishedFile(_ name: PublishedName) throws(StoreError) -> PublishedFile {
        let found = try area.openPublished(name)
        guard let record = try catalogue.file(name.path), record.describes(found), !record.fields.isEmpty else {
            return found.file
        }
        return found.file.described(by: record.fields)
    }

    /// The files and directories in a directory, in the order of their names.
    public func list(_ directory: PublishedName.Directory) throws(StoreError) -> [PublishedEntry] {
        do throws(StoreError) {
            return try area.list(directory)
        } catch {
            throw error == .parentIsFile ? .notFound : error
        }
    }

    /// Removes a published file if the condition holds for the one that has the name; else ``StoreError/preconditionFailed``.
    public func remove(
        _ name: PublishedName, if condition: (PublishedFile.Attributes) -> Bool = { _ in true }
    ) throws(StoreError) {
        if registry.isClosed { throw .superseded }
        try withName(name) { () throws(StoreError) in
            guard condition(try publishedFile(name).attributes) else { throw .preconditionFailed }
            try area.removePublished(name)
            // Counted a little too long if this fails: the sweep finds it.
            _ = try? forgetFile(name)
        }
    }
}
