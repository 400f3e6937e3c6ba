import HTTPSemantics
import SystemCalls

extension UploadStore {
    /// Throws `pathTooLong` if no file can have this name, because its path is too long for the catalog.
    package func requirePossible(_ name: PublishedName) throws(StoreError) { try area.requirePossible(name) }

    /// Opens a published file. Throws `notFound` if there is none, and `targetIsDirectory` if the name belongs to a
    /// directory. Throws `targetIsSpecial` if the name belongs to a link or another object that is not a regular file,
    /// and `parentIsFile` if a part of the path before the last segment is a file.
    public func publishedFile(_ name: PublishedName) throws(StoreError) -> PublishedFile {
        let found = try area.openPublished(name)
        // With a shared catalog `found` has the fields already, because they are in the row of the name. A second read could
        // return the fields of a file that another server has published since.
        if context.publishingArea == nil { return found.file }
        let record = try context.fileRecords.record(of: found, named: name.path) { (path) throws(StoreError) in
            try catalog.file(path)
        }
        return record.fields.isEmpty ? found.file : found.file.described(by: record.fields)
    }

    /// Reads a directory in the order of the file system, one entry at a time. Throws `notFound` if the directory does
    /// not exist.
    package func listing(of directory: PublishedName.Directory) throws(StoreError) -> PublishedListing {
        PublishedListing(try openDirectory(directory))
    }

    /// Returns the first `limit` entries of a directory whose names begin with `prefix` and come after `cursor` in the order
    /// of their bytes.
    ///
    /// The names of a large directory are kept for the next pages (``NameIndexes``). Any other directory is read again for
    /// each page: to its end, unless it is read in the order of the names. A name that exists while all pages are read is
    /// on exactly one of them, even if other names are created or removed meanwhile.
    /// - Parameter cursor: the name after which the page begins; nil for the first page. It need not be the name of an
    ///   entry.
    package func page(
        of directory: PublishedName.Directory, after cursor: String?, prefix: String = "", limit: Int
    ) throws(StoreError) -> PublishedListing {
        let opened = try openDirectory(directory)
        let indexed = try translating("list a directory") { () throws(Errno) in
            try context.nameIndexes.page(of: opened, after: cursor, prefix: prefix, limit: limit)
        }
        if let indexed { return PublishedListing(opened, indexed) }
        var selection = NameSelection(after: cursor, prefix: prefix, limit: limit)
        // The indexes may have read names of `opened`, so the directory is opened again.
        let reader = try openDirectory(directory)
        try translating("list a directory") { () throws(Errno) in
            let isSorted = reader.seek(after: cursor, prefix: prefix)
            // In a sorted directory no name after a full page is on this page.
            while !(isSorted && selection.isFull) {
                if try reader.nextName({ selection.offer($0) }) == nil { break }
            }
        }
        return PublishedListing(reader, selection.page())
    }

    private func openDirectory(_ name: PublishedName.Directory) throws(StoreError) -> any PublishedDirectory {
        do throws(StoreError) {
            return try area.openDirectory(name)
        } catch {
            throw error == .parentIsFile ? .notFound : error
        }
    }

    /// Removes a published file, durably, if it meets the condition.
    /// - Throws: ``StoreError/preconditionFailed`` if the file does not meet the condition; ``StoreError/notFound`` if there
    ///   is no such file; other cases of `StoreError` if it cannot be removed.
    public func remove(
        _ name: PublishedName, if condition: (PublishedFile.Attributes) -> Bool = { _ in true }
    ) throws(StoreError) {
        if registry.isClosed { throw .superseded }
        try registry.withName(name) { () throws(StoreError) in
            var isRemoved = false
            while !isRemoved {
                let attributes = try publishedFile(name).attributes
                guard condition(attributes) else { throw .preconditionFailed }
                do throws(StoreError) {
                    try area.removePublished(name, tagged: attributes.entityTag.opaque)
                    isRemoved = true
                } catch {
                    // Another store has replaced the file since.
                    guard error == .preconditionFailed, !registry.isClosed else { throw error }
                }
            }
            // If this fails, the file is counted until the next check of all files finds that it is missing.
            _ = try? removeFileRecord(name)
        }
    }
}

/// The entries of a directory of published files, one at a time. The attributes of an entry are read only when
/// ``next()`` returns it.
///
/// Only files and directories whose names can be expressed in a URL (``PathSegments``) are listed. Use this object from
/// one thread at a time; the directory stays open as long as the object exists.
package final class PublishedListing {
    private let directory: any PublishedDirectory
    /// The remaining names of the page; nil if the names of the complete directory are listed while it is read.
    private var names: ArraySlice<String>?
    /// The cursor of the next page; nil if this is the last page, or if the complete directory is listed.
    package let nextCursor: String?

    init(_ directory: any PublishedDirectory) {
        self.directory = directory
        nextCursor = nil
    }

    init(_ directory: any PublishedDirectory, _ page: NamePage) {
        self.directory = directory
        names = page.names[...]
        nextCursor = page.hasMore ? page.names.last : nil
    }

    /// The next entry; nil at the end.
    /// - Throws: `StoreError` if the directory cannot be read further. The entries so far are then incomplete.
    package func next() throws(StoreError) -> PublishedEntry? {
        try translating("list a directory") { () throws(Errno) in
            while let name = try nextName() {
                if let entry = try directory.entry(name) { return entry }
            }
            return nil
        }
    }

    private func nextName() throws(Errno) -> String? {
        if names != nil { return names?.popFirst() }
        while let name = try directory.nextName({ NameSelection.listedName($0) }) {
            if let name { return name }
        }
        return nil
    }
}
