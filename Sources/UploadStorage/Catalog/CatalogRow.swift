import HTTPSemantics
import ResumableUpload

/// The row of an upload in the catalog.
package struct CatalogRow: Sendable, Hashable {
    package var id: UploadID
    /// The name of the bytes in the blob area. It differs from the id, because the id gives access to the upload.
    package var blob: String
    package var upload: NewUpload
    package var createdAt: Int64
    package var expiresAt: Int64?
    package var epoch: Int64
    /// The number of durable bytes.
    package var offset: Int64
    package var length: Int64?
    package var phase: UploadRecord.Phase
    /// The publication that was decided, until it is complete.
    package var intent: PublicationIntent?
    /// The encoded states of the running digests. Each contains the count of bytes that it covers, at most `offset`.
    package var digestStates: [[UInt8]]
    /// Whether the publication in `intent` failed and has to be withdrawn.
    package var isWithdrawn = false

    var record: UploadRecord {
        UploadRecord(
            id: id, upload: upload, offset: offset, length: length, phase: phase, createdAt: createdAt,
            expiresAt: expiresAt)
    }

    /// Whether the upload is unfinished, so that its bytes are needed.
    var isUnfinished: Bool {
        switch phase {
        case .receiving, .processing: true
        case .complete, .invalid: false
        }
    }

    /// Returns the row with another offset, which is also its length.
    func advanced(to offset: Int64) -> CatalogRow {
        var row = self
        row.offset = offset
        row.length = offset
        return row
    }

    /// The number of bytes that count toward the quota of the principal.
    var reservedBytes: Int64 { length ?? offset }
}

/// A publication that has been decided: recovery completes it, or stores the response `refused`, without evaluating the
/// condition again.
package struct PublicationIntent: Sendable, Hashable {
    package var name: PublishedName
    /// The entity tag of the file that had this name when the publication was decided; nil if there was no file, and
    /// then no file may be replaced.
    package var replaced: String?
    /// The identity of the bytes, which does not change with their name.
    package var identity: String
    /// The representation metadata that is served with the file.
    package var fields: Fields = [:]
    package var response: Response
    package var refused: Response

    /// Returns whether this file is the file for which the condition was evaluated.
    ///
    /// - Parameter mayHaveMoved: whether the file may have been renamed since. Renaming changes the last two parts of
    ///   the tag, which contain the time of the last change of attributes.
    func replaces(_ file: PublishedFile.Attributes, mayHaveMoved: Bool) -> Bool {
        guard mayHaveMoved, let replaced else { return file.entityTag.opaque == replaced }
        return file.entityTag.opaque.split(separator: "-").dropLast(2) == replaced.split(separator: "-").dropLast(2)
    }
}
