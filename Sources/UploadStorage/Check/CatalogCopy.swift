import SystemCalls

/// A copy of a catalog that no server uses. The check reads a copy because opening the original would change it.
final class CatalogCopy {
    /// The suffixes of the files of a database: none for the database itself, those of its write-ahead log and of the
    /// journal of an interrupted creation.
    private static let suffixes = ["", "-wal", "-journal"]
    private static let pieceSize = 1 << 20

    private let place: String
    private let connection: SQLiteConnection
    /// A description of the migration that the next start will run; `nil` if the catalog is up to date.
    let announcement: String?

    /// - Parameter scratch: a directory for the copy.
    init(of root: FileDescriptor, scratch: String) throws(StoreError) {
        let place = scratch + "/onward-check-" + UploadID().text
        self.place = place
        do {
            try FileDescriptor.makeDirectory(place)
            for suffix in Self.suffixes { try Self.copy(DataDirectory.catalogName + suffix, from: root, to: place) }
            connection = try SQLiteConnection(path: place + "/" + DataDirectory.catalogName)
            announcement = try Self.identify(connection, in: place, free: root.fileSystemSpace().free)
        } catch {
            Self.remove(place)
            throw Self.storeError(error)
        }
    }

    deinit { Self.remove(place) }

    private static func storeError(_ error: any Error) -> StoreError {
        switch error {
        case let error as StoreError: error
        case let error as SQLiteFailure: error.storeError(during: "read a copy of the catalog")
        case let error as Errno: .failure(error, during: "copy the catalog")
        default: .damaged("\(error)")
        }
    }

    private static func copy(_ name: String, from root: FileDescriptor, to place: String) throws(Errno) {
        let source: FileDescriptor
        do throws(Errno) {
            source = try root.open(at: name, [.readOnly, .noFollow])
        } catch {
            if error == .noSuchFile { return }
            throw error
        }
        let target = try FileDescriptor.open(place + "/" + name, [.writeOnly, .create, .exclusive])
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceSize, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while true {
            let count = try source.read(into: buffer, at: offset)
            if count == 0 { return }
            try target.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
            offset += Int64(count)
        }
    }

    private static func remove(_ place: String) {
        guard let directory = try? FileDescriptor.open(place, [.readOnly, .directory, .noFollow]) else { return }
        for name in (try? directory.entryNames()) ?? [] { _ = try? directory.unlink(at: name) }
        let parent = place[..<(place.lastIndex(of: "/") ?? place.startIndex)]
        _ = try? FileDescriptor.open(String(parent), [.readOnly, .directory])
            .removeDirectory(at: String(place.dropFirst(parent.utf8.count + 1)))
    }

    /// Verifies that a database is a catalog, as the server does before it uses a database.
    private static func identify(_ connection: SQLiteConnection, in place: String, free: Int64) throws -> String? {
        let version = try connection.requireCatalog()
        let migration = CatalogMigration(connection, in: place)
        if version > 0 { return try migration.announcement(from: version, free: free) }
        // The database is empty, because the first start was interrupted.
        try migration.run(from: 0)
        return nil
    }

    /// Returns the messages of SQLite's check of the database; empty if it is intact.
    func damages() throws(SQLiteFailure) -> [String] {
        try connection.rows(CatalogSQL.integrityCheck).compactMap { $0.first?.text }.filter { $0 != "ok" }
    }

    /// Returns whether the bytes of an unfinished upload have this name.
    func needsBlob(_ name: String) throws(SQLiteFailure) -> Bool {
        try !connection.rows(CatalogSQL.selectBlob, [.text(name)]).isEmpty
    }

    /// Returns the totals that the last stop saved, and the totals of the rows; `nil` if the last stop saved no totals.
    func totals() throws(SQLiteFailure) -> (saved: CatalogTotals, counted: CatalogTotals)? {
        guard
            try connection.rows(CatalogSQL.readUserVersion).first?[0].integer == Int64(CatalogSQL.migrations.count),
            let saved = try CatalogTotals(savedIn: connection)
        else { return nil }
        let counted = try CatalogTotals { (sql, parameters) throws(SQLiteFailure) in
            try connection.rows(sql, parameters)
        }
        return (saved, counted)
    }

    /// Calls `body` for each upload, with an error if its row cannot be read.
    func forEachUpload(_ body: (Result<CatalogRow, StoreError>) -> Void) throws(SQLiteFailure) {
        for statement in CatalogSQL.selectUploadsByPhase {
            var last: [UInt8] = []
            while true {
                let page = try connection.rows(statement, [.blob(last), .integer(500)])
                for columns in page {
                    body(Result { () throws(StoreError) in try CatalogRow(columns: columns) })
                }
                guard let next = page.last?.first?.blob else { break }
                last = next
            }
        }
    }

    func forEachFile(_ body: (FileRecord) -> Void) throws(SQLiteFailure) {
        var last = ""
        while true {
            let page = try connection.rows(CatalogSQL.selectFiles, [.text(last), .integer(500)])
            for columns in page { body(FileRecord(columns: columns)) }
            guard let next = page.last?.first?.text else { return }
            last = next
        }
    }
}
