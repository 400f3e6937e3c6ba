import HTTPSemantics
import SystemCalls

/// The catalogue in an SQLite database: one thread writes, and puts all changes that wait into one transaction.
final class SQLiteCatalogue: UploadCatalogue {
    private let queue = CommitQueue()
    private let thread: WorkerThread
    /// Nil once the catalogue is closed.
    private let reader: Monitor<SQLiteConnection?>

    /// Opens or creates the database, brings its schema up to date, and after an unclean stop checks it.
    init(path: String, durability: Durability) throws(StoreError) {
        do {
            let writer = try SQLiteCatalogueWriter(path: path, durability: durability, queue: queue)
            let reader = try SQLiteConnection(path: path, readOnly: true)
            try reader.execute(CatalogueSQL.configureReader)
            self.reader = Monitor(reader)
            thread = try WorkerThread(name: "catalogue") { writer.run() }
        } catch let failure as SQLiteFailure {
            throw failure.storeError(during: "open the catalogue")
        } catch let error as StoreError {
            throw error
        } catch let error as Errno {
            throw .cannotStartThread(error)
        } catch {
            throw .damaged("\(error)")
        }
    }

    deinit { close() }

    var statistics: CatalogueStatistics { queue.statistics }

    func commit(_ change: CatalogueChange) throws(StoreError) { try queue.commit(change) }

    func close() {
        queue.close()
        thread.join()
        // After the writer: who only reads leaves the log's files where they are, so that the next start needs no room for them.
        reader.withLock { $0 = nil }
    }

    func row(_ id: UploadID) throws(StoreError) -> CatalogueRow? {
        try read(CatalogueSQL.selectUpload, [.blob(id.bytes)]).first.map(CatalogueRow.init(columns:))
    }

    func unfinishedRows() throws(StoreError) -> [CatalogueRow] {
        var rows: [CatalogueRow] = []
        for columns in try read(CatalogueSQL.selectUnfinished) { rows.append(try CatalogueRow(columns: columns)) }
        return rows
    }

    func processing() throws(StoreError) -> [UploadID] {
        try read(CatalogueSQL.selectProcessing).compactMap { columns in
            columns[0].blob.flatMap(UploadID.init(bytes:))
        }
    }

    func expired(at now: Int64, limit: Int) throws(StoreError) -> [UploadID] {
        try read(CatalogueSQL.selectExpired, [.integer(now), .integer(Int64(limit))]).compactMap { columns in
            columns[0].blob.flatMap(UploadID.init(bytes:))
        }
    }

    func finishedCounts() throws(StoreError) -> (complete: Int, invalid: Int) {
        var counts: [Int64: Int64] = [:]
        for columns in try read(CatalogueSQL.countFinished) {
            if let phase = columns[0].integer, let count = columns[1].integer { counts[phase] = count }
        }
        return (
            Int(counts[CatalogueSQL.Phase.complete] ?? 0), Int(counts[CatalogueSQL.Phase.invalid] ?? 0)
        )
    }

    func timeMark() throws(StoreError) -> LifetimeClock.Mark? {
        let time = try read(CatalogueSQL.readMark, [.text(SQLiteCatalogueWriter.timeMark)]).first?[0].integer
        let wall = try read(CatalogueSQL.readMark, [.text(SQLiteCatalogueWriter.wallMark)]).first?[0].integer
        guard let time, let wall else { return nil }
        return LifetimeClock.Mark(time: time, wall: wall)
    }

    func sizeInBytes() throws(StoreError) -> Int64 { try read(CatalogueSQL.readSize).first?[0].integer ?? 0 }

    func needsBlob(_ name: String) throws(StoreError) -> Bool {
        try !read(CatalogueSQL.selectBlob, [.text(name)]).isEmpty
    }

    func file(_ name: String) throws(StoreError) -> FileRecord? {
        try read(CatalogueSQL.selectFile, [.text(name)]).first.map(FileRecord.init(columns:))
    }

    func files(after name: String, limit: Int) throws(StoreError) -> [FileRecord] {
        try read(CatalogueSQL.selectFiles, [.text(name), .integer(Int64(limit))]).map(FileRecord.init(columns:))
    }

    func publishedBytes() throws(StoreError) -> [String: Int64] {
        var result: [String: Int64] = [:]
        for columns in try read(CatalogueSQL.sumFiles) {
            if let principal = columns[0].text, let sum = columns[1].integer { result[principal] = sum }
        }
        return result
    }

    private func read(_ sql: String, _ parameters: [SQLiteValue] = []) throws(StoreError) -> [[SQLiteValue]] {
        try reader.withLock { (reader) throws(StoreError) in
            guard let reader else { throw .superseded }
            do throws(SQLiteFailure) {
                return try reader.rows(sql, parameters)
            } catch {
                throw error.storeError(during: "read the catalogue")
            }
        }
    }
}
