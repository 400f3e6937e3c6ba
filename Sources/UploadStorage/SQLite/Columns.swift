import HTTPSemantics
import ResumableUpload

extension CatalogRow {
    /// The values of ``CatalogSQL/columns``.
    var columns: [SQLiteValue] {
        let phaseColumns: [SQLiteValue] =
            switch phase {
            case .receiving: [.integer(CatalogSQL.Phase.receiving), .null, .null]
            case .processing:
                [.integer(CatalogSQL.Phase.processing), .null, isWithdrawn ? .text(CatalogSQL.withdrawn) : .null]
            case .complete(let response):
                [.integer(CatalogSQL.Phase.complete), .blob(response.savedBytes), .null]
            case .invalid(let reason): [.integer(CatalogSQL.Phase.invalid), .null, .text(reason)]
            }
        return [
            .blob(id.bytes), .text(blob), .blob(upload.savedBytes), .integer(createdAt), .init(expiresAt),
            .integer(epoch), .integer(offset), .init(length),
        ] + phaseColumns + [.init(intent?.savedBytes), .blob(DigestStates(digestStates).savedBytes)]
    }

    /// Creates a row from the values of ``CatalogSQL/columns``.
    init(columns: [SQLiteValue]) throws(StoreError) {
        guard columns.count == 13, let id = columns[0].blob.flatMap(UploadID.init(bytes:)), let blob = columns[1].text,
            let creation = columns[2].blob, let createdAt = columns[3].integer, let epoch = columns[5].integer,
            let offset = columns[6].integer, let phase = columns[8].integer, let digests = columns[12].blob
        else { throw .damaged("a row of an upload lacks a value") }
        do {
            self.init(
                id: id, blob: blob, upload: try NewUpload(savedBytes: creation), createdAt: createdAt,
                expiresAt: columns[4].integer, epoch: epoch, offset: offset, length: columns[7].integer,
                phase: try Self.phase(phase, response: columns[9].blob, reason: columns[10].text),
                intent: try columns[11].blob.map { (bytes) throws(ByteDecoder.Malformed) in
                    try PublicationIntent(savedBytes: bytes)
                },
                digestStates: try DigestStates(savedBytes: digests).states,
                isWithdrawn: phase == CatalogSQL.Phase.processing && columns[10].text != nil)
        } catch {
            throw .damaged("a row of an upload cannot be read")
        }
    }

    private static func phase(
        _ number: Int64, response: [UInt8]?, reason: String?
    ) throws(ByteDecoder.Malformed) -> UploadRecord.Phase {
        switch number {
        case CatalogSQL.Phase.receiving: return .receiving
        case CatalogSQL.Phase.processing: return .processing
        case CatalogSQL.Phase.complete: return .complete(try Response(savedBytes: response ?? []))
        case CatalogSQL.Phase.invalid: return .invalid(reason: reason ?? "")
        default: throw ByteDecoder.Malformed()
        }
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

    /// Reads the totals that a clean stop saved; nil if the last stop saved no totals.
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
    /// Returns the saved number with this name; nil if there is none.
    func mark(_ name: String) throws(SQLiteFailure) -> Int64? {
        try rows(CatalogSQL.readMark, [.text(name)]).first?[0].integer
    }
}
