import CSQLite
import SystemCalls

/// The connection that writes. After `init` only one thread at a time uses it: the one that ``SharedWork`` chose.
final class SQLiteCatalogWriter: @unchecked Sendable {
    private static let cleanMark = "clean-stop"
    private static let totalsMark = "totals-saved"
    private static let probeMark = "probe"
    /// The names of the marks that store the two times of a ``LifetimeClock/Mark``, in nanoseconds.
    static let timeMark = "lifetime-clock"
    static let wallMark = "wall-clock"

    /// The outcome of a change.
    typealias Outcome = Result<RemovedRows, StoreError>

    /// A failure of one change, or of all changes of a transaction.
    private struct Failure: Error {
        var error: SQLiteFailure
        /// Whether other changes of the transaction may succeed on their own.
        var isAboutOneChange: Bool
    }

    private let connection: SQLiteConnection
    let statistics = Monitor(CatalogStatistics())
    /// Whether a transaction has failed, so the totals in memory may differ from those of the rows.
    private var hasFailed = false
    /// The highest number of an event so far.
    private var lastEvent: Int64 = 0
    /// Whether the database records that it is in use, so that a start after a crash detects the crash. This is
    /// recorded before any other change, or together with the first change.
    private var isMarkedUnclean = false
    /// Whether the last stop was unclean, and the database has not been checked since.
    let isVerificationNeeded: Bool
    /// The totals that the last clean stop saved.
    let savedTotals: CatalogTotals?

    init(path: String, durability: Durability, lockTimeout: Int32) throws {
        connection = try SQLiteConnection(path: path, lockTimeout: lockTimeout)
        // This check comes before anything is written to the database.
        let version = try connection.requireCatalog()
        try connection.execute(CatalogSQL.configureWriter(durability))
        try Self.emptyLog(of: connection)
        let isClean = version == 0 ? true : try connection.mark(Self.cleanMark) != 0
        let isCurrent = version == CatalogSQL.migrations.count
        if !isClean && !isCurrent {
            // A migration rewrites rows, so the database has to be intact.
            let answer = try connection.rows(CatalogSQL.quickCheck).first?[0].text
            if answer != "ok" { throw StoreError.damaged(answer ?? "quick_check returned no result") }
        }
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        try CatalogMigration(connection, in: directory.isEmpty ? "." : directory).run(from: version)
        // A database that cannot be used at all is rejected now, even after a clean stop.
        for statement in CatalogSQL.spotChecks { _ = try connection.rows(statement) }
        isVerificationNeeded = !isClean && isCurrent
        if version == 0 {
            savedTotals = CatalogTotals()
        } else {
            savedTotals = isClean ? try CatalogTotals(savedIn: connection) : nil
        }
        lastEvent = try connection.rows(CatalogSQL.selectLastEvent).first?[0].integer ?? 0
        try markUnclean()
    }

    // MARK: Start and stop

    /// Empties the log of the last process before anything is appended to it.
    ///
    /// After a power loss, the log may end with the last pages of a commit whose first pages are missing. If a later
    /// commit wrote the same first pages again and was interrupted, too, SQLite would read both parts as one complete
    /// commit, which never happened.
    private static func emptyLog(of connection: SQLiteConnection) throws(SQLiteFailure) {
        do throws(SQLiteFailure) { _ = try connection.rows(CatalogSQL.checkpoint) } catch {
            // On a full disk, files can still be served.
            guard error.primaryCode == SQLITE_FULL else { throw error }
        }
    }

    private func markUnclean() throws(SQLiteFailure) {
        do throws(SQLiteFailure) {
            try connection.run(CatalogSQL.begin)
            try setUncleanMarks()
            try connection.run(CatalogSQL.commit)
            isMarkedUnclean = true
        } catch {
            if !connection.isInAutocommit { _ = try? connection.run(CatalogSQL.rollback) }
            // On a full disk files can still be served and removed. In this case the first change sets the marks.
            guard error.primaryCode == SQLITE_FULL else { throw error }
        }
    }

    private func setUncleanMarks() throws(SQLiteFailure) {
        for name in [Self.cleanMark, Self.totalsMark] { try setMark(name, 0) }
    }

    /// Saves the totals and empties the log for the next start. If this fails, the next start counts the totals again,
    /// checks the database and replays the log.
    func stop(saving totals: CatalogTotals?, isVerified: Bool) {
        do throws(SQLiteFailure) {
            try connection.run(CatalogSQL.begin)
            let totals = hasFailed ? nil : totals
            try setMark(Self.cleanMark, isVerified ? 1 : 0)
            try setMark(Self.totalsMark, totals == nil ? 0 : 1)
            try connection.run(CatalogSQL.removeUsage)
            if let totals {
                try setMark("complete", Int64(totals.complete))
                try setMark("invalid", Int64(totals.invalid))
                for (principal, usage) in totals.usage {
                    try connection.run(
                        CatalogSQL.insertUsage,
                        [
                            .text(principal), .integer(Int64(usage.uploads)), .integer(usage.reservedBytes),
                            .integer(usage.publishedBytes),
                        ])
                }
            }
            try connection.run(CatalogSQL.commit)
        } catch {
            if !connection.isInAutocommit { _ = try? connection.run(CatalogSQL.rollback) }
        }
        _ = try? connection.rows(CatalogSQL.checkpoint)
    }

    private func setMark(_ name: String, _ value: Int64) throws(SQLiteFailure) {
        try connection.run(CatalogSQL.setMark, [.text(name), .integer(value)])
    }

    // MARK: Committing

    /// Makes all changes in one transaction, and returns the outcome of each.
    func commit(_ batch: [CatalogChange]) -> [Outcome] {
        do throws(Failure) {
            return try transact(batch)
        } catch {
            // Each change now gets its own transaction, so that only the failing change fails.
            if error.isAboutOneChange && batch.count > 1 { return batch.flatMap { commit([$0]) } }
            return batch.map { _ in .failure(error.error.storeError(during: "write the catalog")) }
        }
    }

    private func transact(_ batch: [CatalogChange]) throws(Failure) -> [Outcome] {
        var isAboutOneChange = false
        let firstEvent = lastEvent
        do throws(SQLiteFailure) {
            try connection.run(CatalogSQL.begin)
            if !isMarkedUnclean { try setUncleanMarks() }
            var outcomes: [Outcome] = []
            isAboutOneChange = true
            for change in batch { outcomes.append(try apply(change)) }
            isAboutOneChange = false
            try connection.run(CatalogSQL.commit)
            isMarkedUnclean = true
            statistics.withLock { statistics in
                statistics.transactions += 1
                statistics.changes += batch.count
                statistics.events += Int(lastEvent - firstEvent)
            }
            return outcomes
        } catch {
            if !connection.isInAutocommit { _ = try? connection.run(CatalogSQL.rollback) }
            hasFailed = true
            lastEvent = firstEvent
            // On a full disk, a transaction with fewer pages may fit. After any other error of a commit, such as a
            // failed synchronization, nothing is retried.
            throw Failure(error: error, isAboutOneChange: isAboutOneChange || error.primaryCode == SQLITE_FULL)
        }
    }

    /// Makes a change. Returns an error if only this change fails and has changed nothing; throws if the transaction
    /// cannot continue.
    private func apply(_ change: CatalogChange) throws(SQLiteFailure) -> Outcome {
        var refusal: StoreError?
        var removed = RemovedRows()
        switch change {
        case .insert(let row, let file):
            refusal = try insert(row)
            if refusal == nil, let file { removed.file = try record(file) }
        case .advance(let advance):
            let values = [.integer(advance.offset), SQLiteValue(advance.length), Self.blob(of: advance.digestStates)]
            let unchanged = try runFenced(CatalogSQL.advance, advance.id, advance.epoch, values)
            refusal =
                try unchanged == nil
                ? nil : runFenced(CatalogSQL.advanceProcessing, advance.id, advance.epoch, values)
        case .markProcessing(let id, let epoch):
            refusal = try runFenced(CatalogSQL.markProcessing, id, epoch)
        case .recordIntent(let id, let epoch, let intent):
            refusal = try runFenced(CatalogSQL.recordIntent, id, epoch, [.blob(intent.savedBytes)])
        case .withdraw(let id, let epoch):
            refusal = try runFenced(CatalogSQL.withdraw, id, epoch)
        case .complete(let completion):
            refusal = try runFenced(
                CatalogSQL.complete, completion.id, completion.epoch,
                [
                    .integer(completion.offset), .blob(completion.response.savedBytes),
                    SQLiteValue(completion.expiresAt), Self.blob(of: []), .blob(completion.upload.savedBytes),
                ])
            if refusal == nil, let file = completion.file { removed.file = try record(file) }
        case .invalidate(let invalidation):
            refusal = try runFenced(
                CatalogSQL.invalidate, invalidation.id, invalidation.epoch,
                [
                    .text(invalidation.reason), SQLiteValue(invalidation.expiresAt), Self.blob(of: []),
                    .blob(invalidation.upload.savedBytes),
                ])
        case .delete(let removals):
            for removal in removals {
                var row = RemovedRows()
                row.add(try delete(removal))
                removed.add(row)
                if row.unfinished > 0, let event = removal.event { try record(event) }
            }
        case .removeFinished(let now, let limit):
            removed.add(
                try connection.rows(CatalogSQL.removeFinished, [.integer(now), .integer(Int64(limit))]))
        case .recordFile(let file, let ending):
            removed.file = try record(file)
            if let ending { _ = try delete(ending) }
        case .removeFiles(let names):
            for name in names { try connection.run(CatalogSQL.removeFile, [.text(name)]) }
        case .limitExpiry(let time, let limit):
            for statement in CatalogSQL.limitExpiry {
                try connection.run(statement, [.integer(time), .integer(Int64(limit))])
            }
        case .recordTime(let mark):
            try connection.run(CatalogSQL.setMark, [.text(Self.timeMark), .integer(mark.time)])
            try connection.run(CatalogSQL.setMark, [.text(Self.wallMark), .integer(mark.wall)])
        case .probe:
            try connection.run(CatalogSQL.countUp, [.text(Self.probeMark)])
        case .reporting(let change, let events):
            let outcome = try apply(change)
            if case .success = outcome { for event in events { try record(event) } }
            return outcome
        case .naming: return .failure(.invalidState("the blob area publishes files"))
        case .outbox(let change): removed.events = try apply(change)
        }
        return refusal.map { .failure($0) } ?? .success(removed)
    }

    /// - Returns: the numbers of dropped events.
    private func apply(_ change: CatalogChange.OutboxChange) throws(SQLiteFailure) -> [Int64] {
        switch change {
        case .remove(let numbers):
            for number in numbers { try connection.run(CatalogSQL.removeEvent, [.integer(number)]) }
        case .setAside(let numbers):
            for number in numbers { try connection.run(CatalogSQL.setEventAside, [.integer(number)]) }
        case .drop(let time, let limit, let isOnlySetAside):
            let statement = isOnlySetAside ? CatalogSQL.dropEventsSetAside : CatalogSQL.dropEvents
            return try connection.rows(statement, [.integer(Int64(limit)), .integer(time)]).compactMap(\.[0].integer)
        }
        return []
    }

    private func record(_ event: UploadEvent) throws(SQLiteFailure) {
        lastEvent += 1
        try connection.run(
            CatalogSQL.insertEvent, [.integer(lastEvent), .integer(event.time), .blob(event.savedBytes)])
    }

    private static func blob(of states: [[UInt8]]) -> SQLiteValue { .blob(DigestStates(states).savedBytes) }

    private func insert(_ row: CatalogRow) throws(SQLiteFailure) -> StoreError? {
        do throws(SQLiteFailure) {
            try connection.run(CatalogSQL.insertUpload, row.columns + [.text(row.upload.principal)])
            return nil
        } catch {
            if error.primaryCode == SQLITE_CONSTRAINT {
                return .invalidState("an upload with this identifier or blob exists")
            }
            throw error
        }
    }

    /// Deletes the row of an upload. Returns the phase of the deleted row, or an empty array if there was no such row.
    private func delete(_ removal: CatalogChange.Removal) throws(SQLiteFailure) -> [[SQLiteValue]] {
        try connection.rows(CatalogSQL.delete, [.blob(removal.id.bytes), .integer(removal.epoch)])
    }

    private func runFenced(
        _ sql: String, _ id: UploadID, _ epoch: Int64, _ others: [SQLiteValue] = []
    ) throws(SQLiteFailure) -> StoreError? {
        let changed = try connection.run(sql, [.blob(id.bytes), .integer(epoch)] + others)
        return changed == 0 ? .superseded : nil
    }

    /// - Returns: the record that the new record replaces.
    private func record(_ file: FileRecord) throws(SQLiteFailure) -> FileRecord? {
        let columns: [SQLiteValue] = [
            .text(file.name), .text(file.principal), .integer(file.size), .text(file.identity),
            .integer(file.modifiedSeconds), .blob(file.fields.savedBytes),
        ]
        if try connection.run(CatalogSQL.insertFile, columns) > 0 { return nil }
        let replaced = try connection.rows(CatalogSQL.selectFile, [.text(file.name)]).first
        try connection.run(CatalogSQL.replaceFile, columns)
        return replaced.map(FileRecord.init(columns:))
    }
}

extension RemovedRows {
    /// Counts deleted rows by their phase, which is their only column here.
    fileprivate mutating func add(_ rows: [[SQLiteValue]]) {
        for columns in rows {
            switch columns[0].integer {
            case StoredRow.Phase.complete: complete += 1
            case StoredRow.Phase.invalid: invalid += 1
            default: unfinished += 1
            }
        }
    }
}
