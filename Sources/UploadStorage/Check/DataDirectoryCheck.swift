import Digests
import SystemCalls

/// Verifies a data directory that no server uses, and changes nothing in it.
///
/// While this object exists, no server can use the directory.
package final class DataDirectoryCheck: StoreCheck {
    private let area: FileBlobArea
    private let catalog: CatalogCopy
    package var summary = CheckSummary()
    /// The maximum number of names of one directory that are in memory at the same time. For more names, the directory
    /// is read again.
    var maxNamesInMemory = 20_000

    /// - Parameter scratch: a directory that can be written, for a copy of the catalog.
    /// - Throws: ``StoreError/inUse``, or an error with which a server would refuse the directory, too:
    ///   ``StoreError/unusableRoot(_:)``, ``StoreError/foreignData(_:)``, ``StoreError/newerSchema(_:)``,
    ///   ``StoreError/damaged(_:)``.
    package init(root: String, scratch: String = "/tmp") throws(StoreError) {
        let directory = try DataDirectory(existing: root)
        catalog = try CatalogCopy(of: directory.root, scratch: scratch)
        area = try translating("start a thread") { () throws(Errno) in try FileBlobArea(directory) }
    }

    deinit { area.close() }

    /// Checks the complete data directory and reports the findings.
    package func run(_ report: (CheckFinding) -> Void) throws(StoreError) -> CheckSummary {
        summary = CheckSummary()
        if let announcement = catalog.announcement {
            found(.catalogOlder, DataDirectory.catalogName, announcement, report)
        }
        do throws(SQLiteFailure) {
            for damage in try catalog.damages() {
                found(.catalogDamaged, DataDirectory.catalogName, damage, report)
            }
            try checkTotals(report)
            try checkUploads(report)
            try checkFiles(report)
        } catch {
            found(.catalogDamaged, DataDirectory.catalogName, error.message, report)
        }
        return summary
    }

    // MARK: Totals

    private func checkTotals(_ report: (CheckFinding) -> Void) throws(SQLiteFailure) {
        guard let (saved, counted) = try catalog.totals() else { return }
        func found(_ detail: String) { self.found(.totalsWrong, DataDirectory.catalogName, detail, report) }
        if (saved.complete, saved.invalid) != (counted.complete, counted.invalid) {
            found(
                """
                the counts that the server saved at its last stop are \(saved.complete) complete and \(saved.invalid) \
                invalid uploads, but the catalog contains \(counted.complete) and \(counted.invalid)
                """)
        }
        for principal in Set(saved.usage.keys).union(counted.usage.keys).sorted() {
            let (saved, counted) = (saved.usage[principal] ?? Usage(), counted.usage[principal] ?? Usage())
            if saved != counted {
                found(
                    """
                    \(principal): the totals that the server saved at its last stop are \(Self.text(saved)), but the \
                    catalog contains \(Self.text(counted))
                    """)
            }
        }
    }

    private static func text(_ usage: Usage) -> String {
        "\(usage.uploads) unfinished uploads, \(usage.reservedBytes) reserved and \(usage.publishedBytes) published bytes"
    }

    // MARK: Uploads

    private func checkUploads(_ report: (CheckFinding) -> Void) throws(SQLiteFailure) {
        try catalog.forEachUpload { result in
            summary.uploads += 1
            switch result {
            case .failure(let error): found(.rowUnreadable, DataDirectory.catalogName, "\(error)", report)
            case .success(let row):
                guard row.isUnfinished else { return }
                summary.unfinished += 1
                do throws(Errno) { check(row, size: try area.size(of: row.blob), report) } catch {
                    found(.bytesMissing, "uploads/" + row.blob, "the bytes cannot be read: \(error)", report)
                }
            }
        }
        do throws(Errno) {
            let names = try area.names()
            while let name = try names() { try checkBytes(name, report) }
        } catch {
            found(.bytesMissing, "uploads", "the directory cannot be read: \(error)", report)
        }
    }

    private func checkBytes(_ name: String, _ report: (CheckFinding) -> Void) throws(Errno) {
        // If the catalog cannot be read, that has been reported already.
        guard let size = try area.size(of: name), (try? catalog.needsBlob(name)) == false else { return }
        found(.bytesUnknown, "uploads/" + name, "its \(size) bytes belong to no unfinished upload", report)
    }

    private func check(_ row: CatalogRow, size: Int64?, _ report: (CheckFinding) -> Void) {
        let path = "uploads/" + row.blob
        let acknowledged = "\(row.offset) bytes of \(row.id) were acknowledged"
        // The bytes of a withdrawn publication are not needed: they are removed as soon as its names are restored.
        if row.isWithdrawn { return }
        if let intent = row.intent {
            let isInPlace = (try? area.openPublished(intent.name))?.identity == intent.identity
            if size ?? 0 < row.offset && !isInPlace {
                found(
                    .publicationLost, path,
                    "\(acknowledged) and were to be published as files/\(intent.name.path), but they are missing",
                    report)
            }
            return
        }
        // The handler of an upload in processing is not called again, but the store may retain its bytes:
        // ``StoreConfiguration/interruption``.
        guard let size else {
            if row.offset > 0 { found(.bytesMissing, path, "\(acknowledged), but the file is missing", report) }
            return
        }
        if size < row.offset { found(.bytesShort, path, "\(acknowledged), but the file has \(size)", report) }
        if size > row.offset, row.phase == .receiving {
            found(.bytesUnacknowledged, path, "\(acknowledged), but the file has \(size)", report)
        }
    }

    // MARK: Files

    private func checkFiles(_ report: (CheckFinding) -> Void) throws(SQLiteFailure) {
        try catalog.forEachFile { record in
            summary.files += 1
            check(record, report)
        }
    }

    private func check(_ record: FileRecord, _ report: (CheckFinding) -> Void) {
        let path = "files/" + record.name
        guard let name = PublishedName(path: record.name) else {
            return found(.rowUnreadable, path, "the recorded name is not a valid file name", report)
        }
        do throws(StoreError) {
            let file = try area.openPublished(name)
            if record.describes(file) { return }
            let size = file.file.attributes.size
            let isSameTime = record.describes(file, ofSize: size)
            found(
                isSameTime ? .fileResized : .fileChanged, path,
                isSameTime
                    ? "it was published with \(record.size) bytes, and now has \(size)"
                    : "it was changed since its publication", report)
        } catch {
            switch error {
            case .notFound, .parentIsFile, .targetIsDirectory, .targetIsSpecial:
                found(.fileRemoved, path, "no file has this name any more", report)
            default: found(.fileUnreadable, path, "\(error)", report)
            }
        }
    }

    // MARK: Digests

    /// Reads every published file to its end and calls `body` with its SHA-256 (32 bytes), in the order of the names.
    /// Files whose names are not UTF-8 are omitted, because the server has not published them.
    package func forEachDigest(
        _ body: (PublishedName, [UInt8]) -> Void, failures report: (CheckFinding) -> Void
    ) throws(StoreError) -> CheckSummary {
        try forEachDigest(in: .root, body, report)
        return summary
    }

    private func forEachDigest(
        in directory: PublishedName.Directory, _ body: (PublishedName, [UInt8]) -> Void,
        _ report: (CheckFinding) -> Void
    ) throws(StoreError) {
        var cursor: String?
        repeat {
            let reader = try area.openDirectory(directory)
            // This is not a listing, so files whose names cannot be expressed in a URL are also read.
            var selection = NameSelection(after: cursor, limit: maxNamesInMemory, isListing: false)
            try translating("list a directory") { () throws(Errno) in
                while try reader.nextName({ selection.offer($0) }) != nil {}
            }
            let page = selection.page()
            for text in page.names {
                guard let name = directory.appending(text),
                    let entry = try translating("list a directory", { () throws(Errno) in try reader.entry(text) })
                else { continue }
                if entry.isDirectory {
                    try forEachDigest(in: name.asDirectory, body, report)
                    continue
                }
                do throws(StoreError) {
                    body(name, try area.openPublished(name).file.sha256())
                } catch {
                    found(.fileUnreadable, "files/" + name.path, "\(error)", report)
                }
            }
            cursor = page.hasMore ? page.names.last : nil
        } while cursor != nil
    }
}

extension PublishedFile {
    /// Reads the file to its end, and returns its SHA-256 (32 bytes).
    package func sha256() throws(StoreError) -> [UInt8] {
        var digest = RunningDigest(.sha256)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            let count = try read(into: buffer, at: offset)
            if count == 0 { return digest.finalized() }
            digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
    }
}
