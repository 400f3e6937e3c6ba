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
        guard let id = rows.bytes(index, 0).flatMap(UploadID.init(bytes:)), let blob = rows.text(index, 1),
            let creation = rows.bytes(index, 2), let createdAt = rows.integer(index, 3),
            let epoch = rows.integer(index, 5), let offset = rows.integer(index, 6), let phase = rows.integer(index, 8),
            let digests = rows.bytes(index, 13)
        else { throw .damaged("a row of an upload lacks a value") }
        do throws(ByteDecoder.Malformed) {
            self.init(
                id: id, blob: blob, upload: try NewUpload(savedBytes: creation), createdAt: createdAt,
                expiresAt: rows.integer(index, 4), epoch: epoch, offset: offset, length: rows.integer(index, 7),
                phase: try Self.phase(phase, response: rows.bytes(index, 9), reason: rows.text(index, 10)),
                intent: try rows.bytes(index, 11).map { (bytes) throws(ByteDecoder.Malformed) in
                    try PublicationIntent(savedBytes: bytes)
                },
                digestStates: try DigestStates(savedBytes: digests).states,
                isWithdrawn: rows.boolean(index, 12) ?? false)
        } catch {
            throw .damaged("a row of an upload cannot be read")
        }
    }

    private static func phase(
        _ number: Int64, response: [UInt8]?, reason: String?
    ) throws(ByteDecoder.Malformed) -> UploadRecord.Phase {
        switch number {
        case ClusterSQL.Phase.receiving: return .receiving
        case ClusterSQL.Phase.processing: return .processing
        case ClusterSQL.Phase.complete: return .complete(try Response(savedBytes: response ?? []))
        case ClusterSQL.Phase.invalid: return .invalid(reason: reason ?? "")
        default: throw ByteDecoder.Malformed()
        }
    }

    /// The phase, the response and the reason as they are stored.
    private var savedPhase: (Int64, DatabaseValue, DatabaseValue) {
        switch phase {
        case .receiving: (ClusterSQL.Phase.receiving, .null, .null)
        case .processing: (ClusterSQL.Phase.processing, .null, .null)
        case .complete(let response): (ClusterSQL.Phase.complete, .bytes(response.savedBytes), .null)
        case .invalid(let reason): (ClusterSQL.Phase.invalid, .null, .text(reason))
        }
    }

    /// The parameters of ``ClusterSQL/insertUpload`` between the session and the limits.
    var parameters: [DatabaseValue] {
        let (number, response, reason) = savedPhase
        return [
            .bytes(id.bytes), .text(blob), .text(upload.principal), .bytes(upload.savedBytes), .integer(createdAt),
            DatabaseValue(expiresAt), .integer(epoch), .integer(offset), DatabaseValue(length), .integer(number),
            response, reason, DatabaseValue(intent?.savedBytes), .boolean(isWithdrawn),
            .bytes(DigestStates(digestStates).savedBytes),
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
