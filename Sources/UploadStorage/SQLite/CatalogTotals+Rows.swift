extension CatalogTotals {
    /// Adds up all rows, page by page.
    init(
        reading rows: (String, [SQLiteValue]) throws(SQLiteFailure) -> [[SQLiteValue]]
    ) throws(SQLiteFailure) {
        self.init()
        var lastID: [UInt8] = []
        while true {
            let groups = try rows(CatalogSQL.sumUploads, [.blob(lastID)])
            for columns in groups { addUploads(columns) }
            guard let last = groups.compactMap({ $0[4].blob }).max(by: { $0.lexicographicallyPrecedes($1) }) else {
                break
            }
            lastID = last
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

    /// One group of ``CatalogSQL/sumUploads``.
    private mutating func addUploads(_ columns: [SQLiteValue]) {
        guard let principal = columns[0].text, let phase = columns[1].integer, let count = columns[2].integer,
            let bytes = columns[3].integer
        else { return }
        switch phase {
        case CatalogSQL.Phase.complete: complete += Int(count)
        case CatalogSQL.Phase.invalid: invalid += Int(count)
        default:
            var usage = usage[principal] ?? Usage()
            usage.uploads += Int(count)
            let (sum, overflow) = usage.reservedBytes.addingReportingOverflow(bytes)
            usage.reservedBytes = overflow ? .max : sum
            self.usage[principal] = usage
        }
    }

    /// What a clean stop saved; nil if the last stop saved nothing.
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
    func mark(_ name: String) throws(SQLiteFailure) -> Int64? {
        try rows(CatalogSQL.readMark, [.text(name)]).first?[0].integer
    }
}
