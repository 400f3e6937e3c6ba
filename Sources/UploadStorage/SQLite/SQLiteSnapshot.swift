import CSQLite
import Synchronization
import SystemCalls

/// A read-only view of the database as it was when the snapshot was created. Later writes do not change it. Every thread
/// can use it.
final class SQLiteSnapshot: @unchecked Sendable {
    // The connection is used only while `isEnded` is locked, except for the interruption, which SQLite allows from any
    // thread.
    private let connection: SQLiteConnection
    private let isEnded = Monitor(false)
    private let isInterrupted = Atomic(false)

    init(path: String) throws(SQLiteFailure) {
        connection = try SQLiteConnection(path: path, isReadOnly: true)
        try connection.execute(CatalogSQL.configureReader)
        // The transaction begins with the first row that is read.
        try connection.execute(CatalogSQL.beginReading)
        _ = try connection.rows(CatalogSQL.readUserVersion)
        _ = try connection.rows(CatalogSQL.countTables)
    }

    /// Interrupts the running statement and ends the view. Until then SQLite cannot empty its write-ahead log.
    func end() {
        isInterrupted.store(true, ordering: .releasing)
        connection.interrupt()
        isEnded.withLock { isEnded in
            if !isEnded { _ = try? connection.execute(CatalogSQL.commit) }
            isEnded = true
        }
    }

    private func rows(_ sql: String, _ parameters: [SQLiteValue] = []) throws(SQLiteFailure) -> [[SQLiteValue]] {
        try isEnded.withLock { (isEnded) throws(SQLiteFailure) in
            if isEnded || isInterrupted.load(ordering: .acquiring) {
                throw SQLiteFailure(
                    code: SQLITE_INTERRUPT, systemError: .interrupted, message: "the catalog was closed")
            }
            return try connection.rows(sql, parameters)
        }
    }

    func totals() throws(SQLiteFailure) -> CatalogTotals {
        try CatalogTotals { (sql, parameters) throws(SQLiteFailure) in try rows(sql, parameters) }
    }

    /// Returns the first message of `quick_check`; `nil` if the database is intact.
    func damage() throws(SQLiteFailure) -> String? {
        let answer = try rows(CatalogSQL.quickCheck).first?[0].text ?? "quick_check returned no result"
        return answer == "ok" ? nil : answer
    }
}
