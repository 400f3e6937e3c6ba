import PostgreSQL
import UploadStorage

/// The recorded events of a cluster, for a process other than its servers. The server that delivers events searches for
/// those that are retried; an event that is dropped while it is sent can still arrive.
package struct ClusterEvents: EventRecords {
    private static let page = 500

    private let database: Database

    /// - Throws: see ``ClusterInspection``.
    package init(_ catalog: DatabaseURI) throws(StoreError) {
        database = Database(catalog, connections: 1, timeout: .seconds(60))
        try database.requireClusterSchema()
    }

    package func forEach(_ body: (OutboxEntry) -> Void) throws(StoreError) {
        var last = Int64.min
        while true {
            let rows = try run(ClusterSQL.listEvents, [.integer(last), .integer(Int64(Self.page))])
            for row in 0..<rows.count {
                let entry = try OutboxEntry(rows, row)
                body(entry)
                last = entry.number
            }
            if rows.count < Self.page { return }
        }
    }

    package func retry(_ numbers: [Int64]) throws(StoreError) { try change(ClusterSQL.retryEvents, numbers) }

    package func drop(_ numbers: [Int64]) throws(StoreError) { try change(ClusterSQL.removeEvents, numbers) }

    private func change(_ sql: String, _ numbers: [Int64]) throws(StoreError) {
        for start in stride(from: 0, to: numbers.count, by: Self.page) {
            let page = numbers[start..<min(start + Self.page, numbers.count)]
            _ = try run(sql, [.integers(page.map { $0 })])
        }
    }

    private func run(_ sql: String, _ parameters: [DatabaseValue]) throws(StoreError) -> DatabaseRows {
        do throws(DatabaseError) { return try database.run(DatabaseStatement(sql, parameters)) } catch {
            throw StoreError(error)
        }
    }
}

extension OutboxEntry {
    /// Creates an entry from the number, the content and the state of an event.
    fileprivate init(_ rows: DatabaseRows, _ row: Int) throws(StoreError) {
        guard let number = rows.integer(row, 0), let content = rows.bytes(row, 1),
            let state = rows.integer(row, 2).flatMap(State.init(rawValue:)),
            let event = try? UploadEvent(savedBytes: content)
        else { throw .damaged("an event cannot be read") }
        self.init(number: number, event: event, state: state)
    }
}
