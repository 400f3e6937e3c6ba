import CSQLite
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// The catalog in an SQLite database. All changes that wait are made in one transaction.
final class SQLiteCatalog: UploadCatalog {
    let commits = SharedWork<CatalogChange, SQLiteCatalogWriter.Outcome>()
    private let integrity = Monitor(Integrity())
    private let eventObserver = Monitor<(@Sendable () -> Void)?>(nil)
    private let writer: SQLiteCatalogWriter
    /// The result of the checks of the database so far.
    private struct Integrity {
        /// The damage that was found, with which all later changes fail; `nil` if there is none.
        var damage: StoreError?
        var isVerified = true
    }

    /// The connection for reading; `nil` once the catalog is closed.
    private let reader: Monitor<SQLiteConnection?>
    /// A view of the database in the state that it had when it was opened; `nil` if neither a count nor a verification
    /// is needed.
    private let snapshot: SQLiteSnapshot?
    let savedTotals: CatalogTotals?
    let isVerificationNeeded: Bool

    /// Opens or creates the database and brings its schema up to date. After an unclean stop, ``verify()`` checks the
    /// database, which takes longer for a larger database. Until the check ends, a statement fails only if it reads a
    /// damaged page.
    init(path: String, durability: Durability, lockTimeout: Int32 = 5_000) throws(StoreError) {
        do {
            writer = try SQLiteCatalogWriter(path: path, durability: durability, lockTimeout: lockTimeout)
            let reader = try SQLiteConnection(path: path, isReadOnly: true)
            try reader.execute(CatalogSQL.configureReader)
            self.reader = Monitor(reader)
            savedTotals = writer.savedTotals
            isVerificationNeeded = writer.isVerificationNeeded
            let isComplete = savedTotals != nil && !isVerificationNeeded
            snapshot = isComplete ? nil : try SQLiteSnapshot(path: path)
            integrity.withLock { [isVerificationNeeded] in $0.isVerified = !isVerificationNeeded }
        } catch let failure as SQLiteFailure {
            throw failure.storeError(during: "open the catalog")
        } catch let error as StoreError {
            throw error
        } catch {
            throw .damaged("\(error)")
        }
    }

    deinit { close(saving: nil) }

    var statistics: CatalogStatistics { writer.statistics.withLock { $0 } }

    func commit(_ changes: [CatalogChange]) -> [SQLiteCatalogWriter.Outcome] {
        if let damage { return changes.map { _ in .failure(damage) } }
        guard let outcomes = commits.run(changes, by: { [writer] in writer.commit($0) }) else {
            return changes.map { _ in .failure(.superseded) }
        }
        for case .failure(let error) in outcomes { stopChanges(after: error) }
        if let observer = eventObserver.withLock({ $0 }), changes.contains(where: \.canRecordEvents) { observer() }
        return outcomes
    }

    func onEvents(_ body: @escaping @Sendable () -> Void) { eventObserver.withLock { $0 = body } }

    var damage: StoreError? { integrity.withLock { $0.damage } }

    /// Whether the database is known to be intact.
    var isVerified: Bool { integrity.withLock { $0.isVerified && $0.damage == nil } }

    func countTotals() throws(StoreError) -> CatalogTotals {
        guard let snapshot else { return savedTotals ?? CatalogTotals() }
        let totals = try translating { () throws(SQLiteFailure) in try snapshot.totals() }
        if !isVerificationNeeded { snapshot.end() }
        return totals
    }

    /// If the error is damage, the catalog accepts no more changes, because more writes could increase the damage, and
    /// the snapshot ends, because the log cannot be emptied while the snapshot exists. The next start counts and checks
    /// everything.
    private func stopChanges(after error: StoreError) {
        guard error.isDamage else { return }
        integrity.withLock { $0.damage = $0.damage ?? error }
        snapshot?.end()
    }

    func stopCounting() { snapshot?.end() }

    func verify() throws(StoreError) {
        guard let snapshot else { return }
        defer { snapshot.end() }
        guard isVerificationNeeded else { return }
        try translating { () throws(SQLiteFailure) in
            if let damage = try snapshot.damage() {
                throw SQLiteFailure(code: SQLITE_CORRUPT, systemError: .inputOutput, message: damage)
            }
        }
        integrity.withLock { $0.isVerified = true }
    }

    func close(saving totals: CatalogTotals?) {
        snapshot?.end()
        if commits.close() { writer.stop(saving: isVerified ? totals : nil, isVerified: isVerified) }
        // The reader is closed after the writer: a connection that only reads leaves the files of the log in place, so
        // that the next start needs no space for them.
        reader.withLock { $0 = nil }
    }

    func row(_ id: UploadID) throws(StoreError) -> CatalogRow? {
        try read(CatalogSQL.selectUpload, [.blob(id.bytes)]).first.map(CatalogRow.init(columns:))
    }

    func rows(after id: UploadID?, limit: Int) throws(StoreError) -> [CatalogRow] {
        try read(CatalogSQL.selectUploads, [.blob(id?.bytes ?? []), .integer(Int64(limit))]).map(
            CatalogRow.init(columns:))
    }

    func processing(after id: UploadID?, limit: Int) throws(StoreError) -> [UploadID] {
        try read(CatalogSQL.selectProcessing, [.blob(id?.bytes ?? []), .integer(Int64(limit))]).compactMap {
            columns in
            columns[0].blob.flatMap(UploadID.init(bytes:))
        }
    }

    func processingCount() throws(StoreError) -> Int {
        Int(try read(CatalogSQL.countProcessing).first?[0].integer ?? 0)
    }

    func receiving(after id: UploadID?, limit: Int) throws(StoreError) -> [DurableBytes] {
        try read(CatalogSQL.selectReceiving, [.blob(id?.bytes ?? []), .integer(Int64(limit))]).compactMap { columns in
            guard let id = columns[0].blob.flatMap(UploadID.init(bytes:)), let blob = columns[1].text,
                let offset = columns[2].integer
            else { return nil }
            return DurableBytes(id: id, blob: blob, offset: offset)
        }
    }

    func expired(at now: Int64, limit: Int) throws(StoreError) -> [UploadID] {
        try read(CatalogSQL.selectExpired, [.integer(now), .integer(Int64(limit))]).compactMap { columns in
            columns[0].blob.flatMap(UploadID.init(bytes:))
        }
    }

    func isExpiring(after time: Int64) throws(StoreError) -> Bool {
        for statement in CatalogSQL.selectExpiringLater {
            if try !read(statement, [.integer(time)]).isEmpty { return true }
        }
        return false
    }

    func timeMark() throws(StoreError) -> LifetimeClock.Mark? {
        let time = try read(CatalogSQL.readMark, [.text(SQLiteCatalogWriter.timeMark)]).first?[0].integer
        let wall = try read(CatalogSQL.readMark, [.text(SQLiteCatalogWriter.wallMark)]).first?[0].integer
        guard let time, let wall else { return nil }
        return LifetimeClock.Mark(time: time, wall: wall)
    }

    func sizeInBytes() throws(StoreError) -> Int64 { try read(CatalogSQL.readSize).first?[0].integer ?? 0 }

    func needsBlob(_ name: String) throws(StoreError) -> Bool {
        try !read(CatalogSQL.selectBlob, [.text(name)]).isEmpty
    }

    func file(_ name: String) throws(StoreError) -> FileRecord? {
        try read(CatalogSQL.selectFile, [.text(name)]).first.map(FileRecord.init(columns:))
    }

    func files(after name: String, limit: Int) throws(StoreError) -> [FileRecord] {
        try read(CatalogSQL.selectFiles, [.text(name), .integer(Int64(limit))]).map(FileRecord.init(columns:))
    }

    func events(after number: Int64, limit: Int) throws(StoreError) -> [OutboxEntry] {
        try entries(CatalogSQL.selectDueEvents, [.integer(number), .integer(Int64(limit))])
    }

    func retriedEvents(limit: Int) throws(StoreError) -> [OutboxEntry] {
        try entries(CatalogSQL.selectRetriedEvents, [.integer(Int64(limit))])
    }

    private func entries(_ sql: String, _ parameters: [SQLiteValue]) throws(StoreError) -> [OutboxEntry] {
        var entries: [OutboxEntry] = []
        for columns in try read(sql, parameters) { entries.append(try OutboxEntry(columns: columns)) }
        return entries
    }

    func hasEvent(_ number: Int64) throws(StoreError) -> Bool {
        let state = try read(CatalogSQL.selectEvent, [.integer(number)]).first?[0].integer
        return state.map { $0 != OutboxEntry.State.setAside.rawValue } ?? false
    }

    func countEvents() throws(StoreError) -> OutboxStatistics {
        var statistics = OutboxStatistics()
        statistics.waiting = 0
        for columns in try read(CatalogSQL.countEvents) {
            let count = Int(columns[1].integer ?? 0)
            if columns[0].integer == OutboxEntry.State.setAside.rawValue {
                statistics.setAside += count
            } else {
                statistics.waiting? += count
            }
        }
        statistics.oldest = try read(CatalogSQL.selectOldestEvent).first?[0].integer
        return statistics
    }

    private func read(_ sql: String, _ parameters: [SQLiteValue] = []) throws(StoreError) -> [[SQLiteValue]] {
        try reader.withLock { (reader) throws(StoreError) in
            guard let reader else { throw .superseded }
            return try translating { () throws(SQLiteFailure) in try reader.rows(sql, parameters) }
        }
    }

    private func translating<Result>(_ body: () throws(SQLiteFailure) -> Result) throws(StoreError) -> Result {
        do throws(SQLiteFailure) { return try body() } catch {
            let failure = error.storeError(during: "read the catalog")
            stopChanges(after: failure)
            throw failure
        }
    }
}

extension CatalogRow {
    /// The values of ``CatalogSQL/columns``.
    var columns: [SQLiteValue] {
        let stored = StoredRow(self)
        let isWithdrawn = phase == .processing && isWithdrawn
        return [
            .init(stored.id), .init(stored.blob), .init(stored.creation), .init(stored.createdAt),
            .init(stored.expiresAt),
            .init(stored.epoch), .init(stored.offset), .init(stored.length), .init(stored.phase),
            .init(stored.response),
            .init(isWithdrawn ? CatalogSQL.withdrawn : stored.reason), .init(stored.intent), .init(stored.digests),
        ]
    }

    /// Creates a row from the values of ``CatalogSQL/columns``.
    init(columns: [SQLiteValue]) throws(StoreError) {
        guard columns.count == 13 else { throw .damaged("a row of an upload lacks a value") }
        let phase = columns[8].integer
        try self.init(
            StoredRow(
                id: columns[0].blob, blob: columns[1].text, creation: columns[2].blob, createdAt: columns[3].integer,
                expiresAt: columns[4].integer, epoch: columns[5].integer, offset: columns[6].integer,
                length: columns[7].integer, phase: phase, response: columns[9].blob, reason: columns[10].text,
                intent: columns[11].blob, digests: columns[12].blob,
                isWithdrawn: phase == StoredRow.Phase.processing && columns[10].text != nil))
    }
}

extension FileRecord {
    /// Creates a record from the columns of ``CatalogSQL/selectFile``.
    init(columns: [SQLiteValue]) {
        self.init(
            name: columns[0].text ?? "", principal: columns[1].text ?? "", size: columns[2].integer ?? 0,
            identity: columns[3].text ?? "", modifiedSeconds: columns[4].integer ?? 0,
            fields: columns[5].blob.flatMap { try? Fields(savedBytes: $0) } ?? [:])
    }
}

extension OutboxEntry {
    /// Creates an entry from the columns number, content and state.
    init(columns: [SQLiteValue]) throws(StoreError) {
        guard let number = columns[0].integer, let content = columns[1].blob,
            let state = columns[2].integer.flatMap(State.init(rawValue:)),
            let event = try? UploadEvent(savedBytes: content)
        else { throw .damaged("an event cannot be read") }
        self.init(number: number, event: event, state: state)
    }
}

extension CatalogTotals {
    /// Adds up all rows, page by page.
    /// - Parameter rows: runs a statement with parameters, and returns the rows of its result.
    init(
        reading rows: (String, [SQLiteValue]) throws(SQLiteFailure) -> [[SQLiteValue]]
    ) throws(SQLiteFailure) {
        self.init()
        var lastNumber: Int64 = 0
        while true {
            let groups = try rows(CatalogSQL.sumUploads, [.integer(lastNumber)])
            for columns in groups { addUploads(columns) }
            guard let last = groups.compactMap(\.[4].integer).max() else { break }
            lastNumber = last
        }
        var lastName = ""
        while true {
            let groups = try rows(CatalogSQL.sumFiles, [.text(lastName)])
            for columns in groups {
                guard let principal = columns[0].text, let sum = columns[1].integer else { continue }
                usage[principal, default: Usage()].publishedBytes += sum
            }
            // Names are compared as SQLite does, byte by byte.
            let names = groups.compactMap { $0[2].text }
            guard let last = names.max(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) else { break }
            lastName = last
        }
    }

    /// Adds one group of the result of ``CatalogSQL/sumUploads``.
    private mutating func addUploads(_ columns: [SQLiteValue]) {
        guard let principal = columns[0].text, let phase = columns[1].integer, let count = columns[2].integer,
            let bytes = columns[3].integer
        else { return }
        switch phase {
        case StoredRow.Phase.complete: complete += Int(count)
        case StoredRow.Phase.invalid: invalid += Int(count)
        default:
            var usage = usage[principal] ?? Usage()
            usage.uploads += Int(count)
            let (sum, overflow) = usage.reservedBytes.addingReportingOverflow(bytes)
            usage.reservedBytes = overflow ? .max : sum
            self.usage[principal] = usage
        }
    }

    /// Reads the totals that a clean stop saved; `nil` if the last stop saved no totals.
    init?(savedIn connection: SQLiteConnection) throws(SQLiteFailure) {
        guard try connection.mark("totals-saved") == 1 else { return nil }
        self.init()
        for columns in try connection.rows(CatalogSQL.selectUsage) {
            guard let principal = columns[0].text, let uploads = columns[1].integer, let reserved = columns[2].integer,
                let published = columns[3].integer
            else { continue }
            usage[principal] = Usage(uploads: Int(uploads), reservedBytes: reserved, publishedBytes: published)
        }
        complete = Int(try connection.mark("complete") ?? 0)
        invalid = Int(try connection.mark("invalid") ?? 0)
    }
}

extension SQLiteConnection {
    /// Returns the saved number with this name; `nil` if there is none.
    func mark(_ name: String) throws(SQLiteFailure) -> Int64? {
        try rows(CatalogSQL.readMark, [.text(name)]).first?[0].integer
    }
}
