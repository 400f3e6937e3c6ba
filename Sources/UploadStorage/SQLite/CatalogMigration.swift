import CSQLite
import HTTPSemantics
import SystemCalls

/// Brings the schema of a catalog up to date. If a migration is interrupted at any point, the next start repeats it.
struct CatalogMigration {
    /// The number of bytes that must be free in addition to the space for four copies of the catalog.
    private static let margin: Int64 = 16 << 20

    /// The fields that an unfinished upload of an older version keeps. Older versions stored nearly all fields, and the
    /// store cannot determine which of them a handler needs, or which are credentials. The migration depends on this
    /// list: do not change it.
    private static let keptFields = [
        "Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "If-Match", "If-None-Match",
        "If-Modified-Since", "If-Unmodified-Since", "Repr-Digest", "Want-Repr-Digest",
    ]

    let connection: SQLiteConnection
    /// The directory of the catalog.
    let directory: String
    /// Returns the number of free bytes in the file system of the directory.
    var freeSpace: () throws -> Int64
    /// Runs after every step that a crash could follow; for tests.
    var afterStep: () throws -> Void = {}

    init(_ connection: SQLiteConnection, in directory: String) {
        self.connection = connection
        self.directory = directory
        freeSpace = { try FileDescriptor.open(directory, [.readOnly, .directory]).fileSystemSpace().free }
    }

    /// - Parameter version: `user_version` of the database.
    func run(from version: Int) throws {
        for (index, migration) in CatalogSQL.migrations.enumerated().dropFirst(version) {
            switch migration {
            case .script(let sql): try change(sql, index)
            case .removeUnneededFields:
                // A new database has nothing to remove.
                if version > 0 { try rewrite { () throws(SQLiteFailure) in try removeUnneededFields() } }
                try finish(index)
            case .rebuild(let sql):
                if version == 0 {
                    try change(sql, index)
                } else {
                    try rewrite { () throws(SQLiteFailure) in try change(sql, index) }
                }
            }
            try afterStep()
        }
    }

    private func change(_ sql: String, _ index: Int) throws(SQLiteFailure) {
        try connection.execute(CatalogSQL.begin)
        // The rows of a large index are sorted in temporary files.
        try SQLiteConnection.withTemporaryFiles(in: directory) { () throws(SQLiteFailure) in
            try connection.execute(sql)
        }
        try finish(index)
        try connection.execute(CatalogSQL.commit)
    }

    private func finish(_ index: Int) throws(SQLiteFailure) {
        try connection.execute(CatalogSQL.setApplicationID())
        try connection.execute(CatalogSQL.setUserVersion(index + 1))
    }

    /// Changes rows with `body` and then rewrites the file, so that neither database nor log contains the old values any
    /// more, and the file has no free pages.
    private func rewrite(_ body: () throws(SQLiteFailure) -> Void) throws {
        try requireSpace()
        do throws(SQLiteFailure) {
            try body()
            try step()
            // Freed pages and gaps in pages still contain the old values. VACUUM writes a new copy without them.
            try SQLiteConnection.withTemporaryFiles(in: directory) { () throws(SQLiteFailure) in
                try connection.execute(CatalogSQL.vacuum)
            }
            try step()
        } catch {
            if error.primaryCode == SQLITE_FULL { throw try Self.shortage(needed: neededSpace(), free: freeSpace()) }
            throw error
        }
        // Old versions of pages are in the log, too, until it is emptied.
        guard try connection.rows(CatalogSQL.checkpoint).first?[0].integer == 0 else {
            throw StoreError.unusableRoot(
                """
                another program reads \(DataDirectory.catalogName), which has to be rewritten; end that program and \
                start the server again
                """)
        }
        try afterStep()
    }

    private func step() throws(SQLiteFailure) {
        do { try afterStep() } catch {
            throw SQLiteFailure(code: SQLITE_ABORT, systemError: .interrupted, message: "\(error)")
        }
    }

    // MARK: Fields of requests

    private func removeUnneededFields() throws(SQLiteFailure) {
        var last: [UInt8] = []
        while let next = try cleanRows(after: last) {
            last = next
            try step()
        }
    }

    /// Cleans one page of rows in one transaction. Rows that are already clean do not change.
    ///
    /// - Returns: the id of the last row; `nil` if there are no more rows.
    private func cleanRows(after last: [UInt8]) throws(SQLiteFailure) -> [UInt8]? {
        let page = try connection.rows(CatalogSQL.selectCreations, [.blob(last)])
        try connection.execute(CatalogSQL.begin)
        for columns in page {
            guard let creation = columns[2].blob else { continue }
            let isFinished = (columns[1].integer ?? 0) >= StoredRow.Phase.complete
            if let upload = try? NewUpload(savedBytes: creation) {
                let cleaned = Self.cleaned(upload, isFinished: isFinished).savedBytes
                if cleaned != creation { try connection.run(CatalogSQL.setCreation, [columns[0], .blob(cleaned)]) }
            } else if isFinished {
                // The server cannot respond to a request with an unreadable row.
                try connection.run(CatalogSQL.deleteUnreadable, [columns[0]])
            } else {
                throw SQLiteFailure(
                    code: SQLITE_CORRUPT, systemError: .inputOutput, message: "the row of an upload cannot be read")
            }
        }
        try connection.execute(CatalogSQL.commit)
        return page.last?[0].blob
    }

    private static func cleaned(_ upload: NewUpload, isFinished: Bool) -> NewUpload {
        var fields = Fields()
        for name in keptFields {
            for value in upload.fields.values(name) { fields.append(name, value) }
        }
        var cleaned = isFinished ? upload.withoutFields : upload
        if !isFinished { cleaned.fields = fields }
        // The query is part of the target, and often has credentials.
        cleaned.target = String(upload.target.prefix { $0 != "?" })
        return cleaned
    }

    // MARK: Space

    private func requireSpace() throws {
        let (needed, free) = (try neededSpace(), try freeSpace())
        if free < needed { throw Self.shortage(needed: needed, free: free) }
    }

    /// Returns a description of the migration that the next start will run; `nil` if the database is up to date.
    ///
    /// - Parameter free: the number of free bytes in the file system of the database.
    func announcement(from version: Int, free: Int64) throws(SQLiteFailure) -> String? {
        let steps = CatalogSQL.migrations.dropFirst(version)
        if steps.isEmpty { return nil }
        let rewrites = steps.contains { if case .script = $0 { false } else { true } }
        return "an older version of onward wrote this catalog; the server's next start "
            + (rewrites
                ? "rewrites it, which needs \(try neededSpace()) bytes of free space, and \(free) are free"
                : "changes it") + "; older versions of onward cannot open it after that"
    }

    /// Returns the number of free bytes that a rewrite needs. The new rows and the erased pages of the old rows are
    /// written to the log, and then to the file. After that the new copy of the file is written twice: to a temporary
    /// file, and to the log.
    private func neededSpace() throws(SQLiteFailure) -> Int64 {
        4 * (try connection.rows(CatalogSQL.readUsedSize).first?[0].integer ?? 0) + Self.margin
    }

    private static func shortage(needed: Int64, free: Int64) -> StoreError {
        .unusableRoot(
            """
            an older version of onward wrote \(DataDirectory.catalogName). It has to be rewritten once, which needs \
            \(needed) bytes of free space, and \(free) are free. Free some space, or move the data directory to a \
            larger disk, and start the server again. No data is lost
            """)
    }
}
