import HTTPSemantics
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

/// A publication that has been decided: recovery carries it out, or answers `refused`, but never asks again.
package struct PublicationIntent: Sendable, Hashable {
    package var name: PublishedName
    /// The opaque tag of the file that had this name at the decision; nil: there was none, and none may be replaced.
    package var replaced: String?
    /// Identity of the bytes, which they keep under their new name.
    package var identity: String
    /// Representation metadata, to be served with the file.
    package var fields: Fields = [:]
    package var response: Response
    package var refused: Response

    /// Whether this file is the one that was evaluated.
    ///
    /// - Parameter mayHaveMoved: whether it may have had another name since: that changes the last two parts of the tag, the time of
    ///   the last change of attributes.
    func replaces(_ file: PublishedFile.Attributes, mayHaveMoved: Bool) -> Bool {
        guard mayHaveMoved, let replaced else { return file.entityTag.opaque == replaced }
        return file.entityTag.opaque.split(separator: "-").dropLast(2) == replaced.split(separator: "-").dropLast(2)
    }
}
