import CSQLite
import Synchronization
import SystemCalls

/// A read-only view of the database as it was when this was made, whatever is written meanwhile. Safe to use from any thread.
final class SQLiteSnapshot: @unchecked Sendable {
    // Used with the lock held, but for the interruption, which SQLite allows from any thread.
    private let connection: SQLiteConnection
    private let isEnded = Monitor(false)
    private let isInterrupted = Atomic(false)

    init(path: String) throws(SQLiteFailure) {
        connection = try SQLiteConnection(path: path, readOnly: true)
        try connection.execute(CatalogueSQL.configureReader)
        // The transaction begins with the first row that is read.
        try connection.execute(CatalogueSQL.beginReading)
        _ = try connection.rows(CatalogueSQL.readUserVersion)
        _ = try connection.rows(CatalogueSQL.countTables)
    }

    /// Cuts off what runs and ends the view, so that the log can be emptied again.
    func end() {
        isInterrupted.store(true, ordering: .releasing)
        connection.interrupt()
        isEnded.withLock { isEnded in
            if !isEnded { _ = try? connection.execute(CatalogueSQL.commit) }
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

    /// Adds up all rows, page by page.
    func totals() throws(SQLiteFailure) -> CatalogueTotals {
        var totals = CatalogueTotals()
        var lastID: [UInt8] = []
        while true {
            let groups = try rows(CatalogueSQL.sumUploads, [.blob(lastID)])
            for columns in groups { totals.addUploads(columns) }
            guard let last = groups.compactMap({ $0[4].blob }).max(by: { $0.lexicographicallyPrecedes($1) }) else {
                break
            }
            lastID = last
        }
        var lastName = ""
        while true {
            let groups = try rows(CatalogueSQL.sumFiles, [.text(lastName)])
            for columns in groups {
                guard let principal = columns[0].text, let sum = columns[1].integer else { continue }
                totals.usage[principal, default: Usage()].publishedBytes += sum
            }
            // Names are compared as SQLite does, byte by byte.
            let names = groups.compactMap { $0[2].text }
            guard let last = names.max(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) else { break }
            lastName = last
        }
        return totals
    }

    /// What `quick_check` finds; nil if nothing.
    func damage() throws(SQLiteFailure) -> String? {
        let answer = try rows(CatalogueSQL.quickCheck).first?[0].text ?? "quick_check gave no answer"
        return answer == "ok" ? nil : answer
    }
}

extension CatalogueTotals {
    /// One group of ``CatalogueSQL/sumUploads``.
    fileprivate mutating func addUploads(_ columns: [SQLiteValue]) {
        guard let principal = columns[0].text, let phase = columns[1].integer, let count = columns[2].integer,
            let bytes = columns[3].integer
        else { return }
        switch phase {
        case CatalogueSQL.Phase.complete: complete += Int(count)
        case CatalogueSQL.Phase.invalid: invalid += Int(count)
        default:
            var usage = usage[principal] ?? Usage()
            usage.uploads += Int(count)
            let (sum, overflow) = usage.reservedBytes.addingReportingOverflow(bytes)
            usage.reservedBytes = overflow ? .max : sum
            self.usage[principal] = usage
        }
    }
}
