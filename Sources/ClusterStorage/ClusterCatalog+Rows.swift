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
                response: rows.bytes(index, 9), reason: rows.text(index, 10), intent: nil,
                digests: rows.bytes(index, 11), isWithdrawn: false))
    }

    /// The parameters of ``ClusterSQL/insertUpload`` between the session and the limits.
    var parameters: [DatabaseValue] {
        let stored = StoredRow(self)
        return [
            DatabaseValue(stored.id), DatabaseValue(stored.blob), .text(upload.principal),
            DatabaseValue(stored.creation),
            DatabaseValue(stored.createdAt), DatabaseValue(stored.expiresAt), DatabaseValue(stored.epoch),
            DatabaseValue(stored.offset), DatabaseValue(stored.length), DatabaseValue(stored.phase),
            DatabaseValue(stored.response), DatabaseValue(stored.reason), DatabaseValue(stored.digests),
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
}

extension CatalogChange {
    /// The record of the file that the upload has published.
    private var file: FileRecord? {
        switch self {
        case .insert(_, let file): file
        case .complete(let completion): completion.file
        case .recordFile(let file, _): file
        default: nil
        }
    }

    /// The function that gives bytes a name together with this change, and its parameters.
    func effect(_ naming: Naming) -> (ClusterSQL.Effect, parameters: [DatabaseValue]) {
        switch naming {
        case .file(let name, let attributes, let blob, let replaced):
            let modified = attributes.modifiedSeconds * 1_000_000_000 + attributes.modifiedNanoseconds
            return (
                .publish,
                [.text(blob)] + name.directory.path + name.entry + [
                    .integer(attributes.size), .integer(modified), .text(attributes.entityTag.opaque),
                    DatabaseValue(replaced), DatabaseValue(file?.principal), DatabaseValue(file?.fields.savedBytes),
                ]
            )
        case .retained(let key, let description, let blob, let size):
            return (.retain, [.text(key), .text(blob), .bytes(description), .integer(size)])
        }
    }
}

extension CatalogChange.Naming {
    var blob: String {
        switch self {
        case .file(_, _, let blob, _), .retained(_, _, let blob, _): blob
        }
    }

    var isFile: Bool { if case .file = self { true } else { false } }
}
