import HTTPSemantics
import PostgreSQL
import ResumableUpload
import UploadStorage

extension DatabaseRows {
    /// The ids in the first column.
    var uploads: [UploadID] { (0..<count).compactMap { bytes($0, 0).flatMap(UploadID.init(bytes:)) } }
}

extension CatalogRow {
    /// Creates a row from the values of ``ClusterSQL/columns``.
    init(_ rows: DatabaseRows, _ index: Int) throws(StoreError) {
        try self.init(
            StoredRow(
                id: rows.bytes(index, 0), blob: rows.text(index, 1), creation: rows.bytes(index, 2),
                createdAt: rows.integer(index, 3), expiresAt: rows.integer(index, 4), epoch: rows.integer(index, 5),
                offset: rows.integer(index, 6), length: rows.integer(index, 7), phase: rows.integer(index, 8),
                response: rows.bytes(index, 9), reason: rows.text(index, 10), intent: rows.bytes(index, 11),
                digests: rows.bytes(index, 13), isWithdrawn: rows.boolean(index, 12) ?? false))
    }

    /// The parameters of ``ClusterSQL/insertUpload`` between the session and the limits.
    var parameters: [DatabaseValue] {
        let stored = StoredRow(self)
        return [
            DatabaseValue(stored.id), DatabaseValue(stored.blob), .text(upload.principal),
            DatabaseValue(stored.creation),
            DatabaseValue(stored.createdAt), DatabaseValue(stored.expiresAt), DatabaseValue(stored.epoch),
            DatabaseValue(stored.offset), DatabaseValue(stored.length), DatabaseValue(stored.phase),
            DatabaseValue(stored.response), DatabaseValue(stored.reason), DatabaseValue(stored.intent),
            .boolean(stored.isWithdrawn), DatabaseValue(stored.digests),
        ]
    }
}

/// The path of a published file, divided as in the table of names.
struct StoredPath {
    /// The path of the directory without a slash at its ends; empty for the root.
    var directory: String
    var name: String

    init(_ path: String) {
        let bytes = path.utf8
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else {
            (directory, name) = ("", path)
            return
        }
        directory = String(decoding: bytes[..<slash], as: UTF8.self)
        name = String(decoding: bytes[bytes.index(after: slash)...], as: UTF8.self)
    }
}

extension FileRecord {
    /// Creates a record from the columns of ``ClusterSQL/selectFile``.
    init(_ rows: DatabaseRows, _ index: Int) {
        let directory = rows.text(index, 0) ?? ""
        let name = rows.text(index, 1) ?? ""
        let modified = rows.integer(index, 4) ?? 0
        self.init(
            name: directory.isEmpty ? name : directory + "/" + name, principal: rows.text(index, 2) ?? "",
            size: rows.integer(index, 3) ?? 0, identity: "\(modified / 1_000_000_000).\(modified % 1_000_000_000)",
            modifiedSeconds: modified / 1_000_000_000,
            fields: rows.bytes(index, 5).flatMap { try? Fields(savedBytes: $0) } ?? [:])
    }

    /// The parameters of ``ClusterSQL/recordFile(_:)``.
    var parameters: [DatabaseValue] {
        let path = StoredPath(name)
        // The identity is the exact time of the publication: seconds and nanoseconds.
        let nanoseconds = identity.split(separator: ".").last.flatMap { Int64($0) } ?? 0
        return [
            .text(path.directory), .text(path.name), .integer(modifiedSeconds * 1_000_000_000 + nanoseconds),
            .integer(size), .text(principal), .bytes(fields.savedBytes),
        ]
    }
}
