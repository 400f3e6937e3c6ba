import ResumableUpload

/// Everything the catalog keeps of one upload.
package struct CatalogRow: Sendable, Hashable {
    package var id: UploadID
    /// Name of its bytes in the blob area. Not the id: a listing of names gives no access.
    package var blob: String
    package var upload: NewUpload
    package var createdAt: Int64
    package var expiresAt: Int64?
    package var epoch: Int64
    /// Durable bytes.
    package var offset: Int64
    package var length: Int64?
    package var phase: UploadRecord.Phase
    /// The publication that was decided, until it has come to its end.
    package var intent: PublicationIntent?
    /// Encoded states of the running digests, each of the first bytes up to its own count, none beyond `offset`.
    package var digestStates: [[UInt8]]
    /// Whether the publication in `intent` failed and has to be withdrawn.
    package var isWithdrawn = false

    var record: UploadRecord {
        UploadRecord(
            id: id, upload: upload, offset: offset, length: length, phase: phase, createdAt: createdAt,
            expiresAt: expiresAt)
    }

    /// Whether it still counts as an unfinished upload, whose bytes are needed.
    var isUnfinished: Bool {
        switch phase {
        case .receiving, .processing: true
        case .complete, .invalid: false
        }
    }

    /// The same with all bytes that were received.
    func advanced(to offset: Int64) -> CatalogRow {
        var row = self
        row.offset = offset
        row.length = offset
        return row
    }

    /// Bytes that count against its principal's quota.
    var reservedBytes: Int64 { length ?? offset }
}
