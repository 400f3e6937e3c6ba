import CSQLite
import SystemCalls

/// The connection that writes. After `init` it belongs to the thread that calls ``run()``, and to nobody else.
final class SQLiteCatalogueWriter: @unchecked Sendable {
    private static let cleanMark = "clean-stop"
    private static let probeMark = "probe"
    /// Nanoseconds of ``LifetimeClock/Mark``.
    static let timeMark = "lifetime-clock"
    static let wallMark = "wall-clock"

    private let connection: SQLiteConnection
    private let queue: CommitQueue

    init(path: String, durability: Durability, queue: CommitQueue) throws {
        connection = try SQLiteConnection(path: path)
        self.queue = queue
        // Before anything is written to it.
        let version = try connection.requireOwn()
        try connection.execute(CatalogueSQL.configureWriter(durability))
        if version > 0 { try checkAfterUncleanStop() }
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        try CatalogueMigration(connection, in: directory.isEmpty ? "." : directory).run(from: version)
        try markUnclean()
    }

    /// Serves the queue until it is closed.
    func run() {
        while let batch = queue.next() { commit(batch) }
        // Both are courtesies to the next start: a failure makes it check the database and replay the log.
        _ = try? connection.run(CatalogueSQL.setMark, [.text(Self.cleanMark), .integer(1)])
        _ = try? connection.rows(CatalogueSQL.checkpoint)
    }

    // MARK: Opening

    private func checkAfterUncleanStop() throws {
        let mark = try connection.rows(CatalogueSQL.readMark, [.text(Self.cleanMark)]).first?[0].integer
        guard mark == 0 else { return }
        let answer = try connection.rows(CatalogueSQL.quickCheck).first?[0].text
        if answer != "ok" { throw StoreError.damaged(answer ?? "quick_check gave no answer") }
    }

    private func markUnclean() throws(SQLiteFailure) {
        do throws(SQLiteFailure) {
            try connection.run(CatalogueSQL.setMark, [.text(Self.cleanMark), .integer(0)])
        } catch {
            // On a full disk files can still be served, and removed.
            guard error.primaryCode == SQLITE_FULL else { throw error }
        }
    }

    // MARK: Committing

    private func commit(_ batch: [CommitQueue.Pending]) {
        let outcomes: [Result<Void, StoreError>]
        do throws(SQLiteFailure) {
            outcomes = try transact(batch)
        } catch {
            if !connection.isInAutocommit { _ = try? connection.run(CatalogueSQL.rollback) }
            let failure = error.storeError(during: "write the catalogue")
            outcomes = Array(repeating: .failure(failure), count: batch.count)
        }
        queue.count(commits: batch.count)
        for (pending, outcome) in zip(batch, outcomes) { pending.finish(outcome) }
    }

    private func transact(_ batch: [CommitQueue.Pending]) throws(SQLiteFailure) -> [Result<Void, StoreError>] {
        try connection.run(CatalogueSQL.begin)
        var outcomes: [Result<Void, StoreError>] = []
        for pending in batch {
            let refusal = try apply(pending.change)
            outcomes.append(refusal.map { .failure($0) } ?? .success(()))
        }
        try connection.run(CatalogueSQL.commit)
        return outcomes
    }

    /// Gives an error where this change alone fails and has done nothing; throws where the transaction cannot go on.
    private func apply(_ change: CatalogueChange) throws(SQLiteFailure) -> StoreError? {
        switch change {
        case .insert(let row):
            return try insert(row)
        case .advance(let advance):
            return try fenced(
                CatalogueSQL.advance, advance.id, advance.epoch,
                [.integer(advance.offset), SQLiteValue(advance.length), Self.blob(of: advance.digestStates)])
        case .markProcessing(let id, let epoch):
            return try fenced(CatalogueSQL.markProcessing, id, epoch)
        case .intend(let id, let epoch, let intent):
            return try fenced(CatalogueSQL.intend, id, epoch, [.blob(intent.savedBytes)])
        case .complete(let completion):
            let refusal = try fenced(
                CatalogueSQL.complete, completion.id, completion.epoch,
                [
                    .integer(completion.offset), .blob(completion.response.savedBytes),
                    SQLiteValue(completion.expiresAt), Self.blob(of: []), .blob(completion.upload.savedBytes),
                ])
            if refusal == nil, let file = completion.file { try record(file) }
            return refusal
        case .invalidate(let invalidation):
            return try fenced(
                CatalogueSQL.invalidate, invalidation.id, invalidation.epoch,
                [
                    .text(invalidation.reason), SQLiteValue(invalidation.expiresAt), Self.blob(of: []),
                    .blob(invalidation.upload.savedBytes),
                ])
        case .delete(let id, let epoch):
            try connection.run(CatalogueSQL.delete, [.blob(id.bytes), .integer(epoch)])
        case .recordFile(let file):
            try record(file)
        case .removeFiles(let names):
            for name in names { try connection.run(CatalogueSQL.removeFile, [.text(name)]) }
        case .limitExpiry(let limit):
            try connection.run(CatalogueSQL.limitExpiry, [.integer(limit)])
        case .recordTime(let mark):
            try connection.run(CatalogueSQL.setMark, [.text(Self.timeMark), .integer(mark.time)])
            try connection.run(CatalogueSQL.setMark, [.text(Self.wallMark), .integer(mark.wall)])
        case .probe:
            try connection.run(CatalogueSQL.countUp, [.text(Self.probeMark)])
        }
        return nil
    }

    private static func blob(of states: [[UInt8]]) -> SQLiteValue { .blob(DigestStates(states).savedBytes) }

    private func insert(_ row: CatalogueRow) throws(SQLiteFailure) -> StoreError? {
        do throws(SQLiteFailure) {
            try connection.run(CatalogueSQL.insertUpload, row.columns + [.text(row.upload.principal)])
            return nil
        } catch {
            if error.primaryCode == SQLITE_CONSTRAINT { return .invalidState("an upload of this name exists") }
            throw error
        }
    }

    private func fenced(
        _ sql: String, _ id: UploadID, _ epoch: Int64, _ rest: [SQLiteValue] = []
    ) throws(SQLiteFailure) -> StoreError? {
        let changed = try connection.run(sql, [.blob(id.bytes), .integer(epoch)] + rest)
        return changed == 0 ? .superseded : nil
    }

    private func record(_ file: FileRecord) throws(SQLiteFailure) {
        try connection.run(
            CatalogueSQL.recordFile,
            [
                .text(file.name), .text(file.principal), .integer(file.size), .text(file.identity),
                .integer(file.modifiedSeconds), .blob(file.fields.savedBytes),
            ])
    }
}
