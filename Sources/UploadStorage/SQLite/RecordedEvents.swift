import CSQLite
import SystemCalls

/// The recorded events of a data directory, for a process other than the server. The server can be running.
package final class RecordedEvents: EventRecords {
    private let connection: SQLiteConnection

    /// - Parameter root: the path of a data directory that this version has opened before.
    package init(root: String) throws(StoreError) {
        do {
            let names = try FileDescriptor.open(root, [.readOnly, .directory]).entryNames()
            guard names.contains(DataDirectory.catalogName) else {
                throw StoreError.unusableRoot(
                    "it is not a data directory of onward, because it contains no \(DataDirectory.catalogName)")
            }
            connection = try SQLiteConnection(path: root + "/" + DataDirectory.catalogName, canCreate: false)
            guard try connection.requireCatalog() == CatalogSQL.migrations.count else {
                throw StoreError.unusableRoot(
                    "an older version of onward wrote it; start the server once to update it")
            }
        } catch {
            throw Self.storeError(error)
        }
    }

    private static func storeError(_ error: any Error) -> StoreError {
        switch error {
        case let error as StoreError: error
        case let error as SQLiteFailure: error.storeError(during: "read or change the recorded events")
        case let error as Errno: .unusableRoot("\(error)")
        default: .damaged("\(error)")
        }
    }

    package func forEach(_ body: (OutboxEntry) -> Void) throws(StoreError) {
        var last: Int64 = 0
        while true {
            let page: [[SQLiteValue]]
            do throws(SQLiteFailure) {
                page = try connection.rows(CatalogSQL.selectEvents, [.integer(last), .integer(500)])
            } catch { throw Self.storeError(error) }
            for columns in page { body(try OutboxEntry(columns: columns)) }
            guard let next = page.last?.first?.integer else { return }
            last = next
        }
    }

    package func retry(_ numbers: [Int64]) throws(StoreError) { try change(CatalogSQL.retryEvent, numbers) }

    package func drop(_ numbers: [Int64]) throws(StoreError) { try change(CatalogSQL.removeEvent, numbers) }

    /// Makes one change for each number, in transactions that are short because the server may wait for them.
    private func change(_ sql: String, _ numbers: [Int64]) throws(StoreError) {
        var remaining = numbers[...]
        do throws(SQLiteFailure) {
            while !remaining.isEmpty {
                try connection.run(CatalogSQL.begin)
                for number in remaining.prefix(256) { try connection.run(sql, [.integer(number)]) }
                try connection.run(CatalogSQL.commit)
                remaining = remaining.dropFirst(256)
            }
        } catch {
            if !connection.isInAutocommit { _ = try? connection.run(CatalogSQL.rollback) }
            throw Self.storeError(error)
        }
    }
}
