import HTTPSemantics
import ResumableUpload

/// The values of the row of an upload, as every catalog stores them in its columns. A value is nil if its column is null.
package struct StoredRow {
    /// The values of the column `phase`. Uploads with a value below `complete` are unfinished.
    package enum Phase {
        package static let receiving: Int64 = 0
        package static let processing: Int64 = 1
        package static let complete: Int64 = 2
        package static let invalid: Int64 = 3
    }

    package var id: [UInt8]?
    package var blob: String?
    package var creation: [UInt8]?
    package var createdAt: Int64?
    package var expiresAt: Int64?
    package var epoch: Int64?
    package var offset: Int64?
    package var length: Int64?
    package var phase: Int64?
    package var response: [UInt8]?
    package var reason: String?
    package var intent: [UInt8]?
    package var digests: [UInt8]?
    package var isWithdrawn: Bool

    package init(
        id: [UInt8]?, blob: String?, creation: [UInt8]?, createdAt: Int64?, expiresAt: Int64?, epoch: Int64?,
        offset: Int64?, length: Int64?, phase: Int64?, response: [UInt8]?, reason: String?, intent: [UInt8]?,
        digests: [UInt8]?, isWithdrawn: Bool
    ) {
        (self.id, self.blob, self.creation, self.createdAt, self.expiresAt) = (id, blob, creation, createdAt, expiresAt)
        (self.epoch, self.offset, self.length, self.phase) = (epoch, offset, length, phase)
        (self.response, self.reason, self.intent, self.digests) = (response, reason, intent, digests)
        self.isWithdrawn = isWithdrawn
    }

    package init(_ row: CatalogRow) {
        let (phase, response, reason): (Int64, [UInt8]?, String?) =
            switch row.phase {
            case .receiving: (Phase.receiving, nil, nil)
            case .processing: (Phase.processing, nil, nil)
            case .complete(let response): (Phase.complete, response.savedBytes, nil)
            case .invalid(let reason): (Phase.invalid, nil, reason)
            }
        self.init(
            id: row.id.bytes, blob: row.blob, creation: row.upload.savedBytes, createdAt: row.createdAt,
            expiresAt: row.expiresAt, epoch: row.epoch, offset: row.offset, length: row.length, phase: phase,
            response: response, reason: reason, intent: row.intent?.savedBytes,
            digests: DigestStates(row.digestStates).savedBytes, isWithdrawn: row.isWithdrawn)
    }

    fileprivate func decodedPhase(_ number: Int64) throws(ByteDecoder.Malformed) -> UploadRecord.Phase {
        switch number {
        case Phase.receiving: return .receiving
        case Phase.processing: return .processing
        case Phase.complete: return .complete(try Response(savedBytes: response ?? []))
        case Phase.invalid: return .invalid(reason: reason ?? "")
        default: throw ByteDecoder.Malformed()
        }
    }
}

extension CatalogRow {
    package init(_ stored: StoredRow) throws(StoreError) {
        guard let id = stored.id.flatMap(UploadID.init(bytes:)), let blob = stored.blob, let creation = stored.creation,
            let createdAt = stored.createdAt, let epoch = stored.epoch, let offset = stored.offset,
            let phase = stored.phase, let digests = stored.digests
        else { throw .damaged("a row of an upload lacks a value") }
        do throws(ByteDecoder.Malformed) {
            self.init(
                id: id, blob: blob, upload: try NewUpload(savedBytes: creation), createdAt: createdAt,
                expiresAt: stored.expiresAt, epoch: epoch, offset: offset, length: stored.length,
                phase: try stored.decodedPhase(phase),
                intent: try stored.intent.map { (bytes) throws(ByteDecoder.Malformed) in
                    try PublicationIntent(savedBytes: bytes)
                },
                digestStates: try DigestStates(savedBytes: digests).states, isWithdrawn: stored.isWithdrawn)
        } catch {
            throw .damaged("a row of an upload cannot be read")
        }
    }
}
