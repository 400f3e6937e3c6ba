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

    /// From the values of ``CatalogSQL/columns``.
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
        case CatalogSQL.Phase.complete: return .complete(try FinalResponse(savedBytes: response ?? []))
        case CatalogSQL.Phase.invalid: return .invalid(reason: reason ?? "")
        default: throw ByteDecoder.Malformed()
        }
    }
}
