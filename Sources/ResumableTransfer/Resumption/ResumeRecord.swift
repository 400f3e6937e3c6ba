import HTTPTransport
import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// The content of resume data.
struct ResumeRecord: Sendable, Hashable, Codable {
    enum Content: Sendable, Hashable {
        case upload(UploadCheckpoint)
        case download(DownloadCheckpoint)
    }

    /// The caller's request, with only the fields that are known to contain no credentials.
    struct Request: Sendable, Hashable, Codable {
        var uri: String
        var method: String
        /// The name and value of each field, in order.
        var fields: [[String]]
        /// The expected digests, as the value of `Repr-Digest` (RFC 9530); `nil` if there are none.
        var digest: String?

        /// - Parameter uri: the parsed URI of the request, if the caller has it.
        init(_ request: TransferRequest, uri: RequestURI? = nil) {
            self.uri = (uri ?? RequestURI(request.uri))?.text ?? ""
            method = request.method.rawValue
            fields = request.fields.withoutSecrets.map { [$0.name, $0.value] }
            digest = request.digestField?.serialized
        }

        /// The number of bytes of all texts and their delimiters in JSON, if no character is escaped.
        fileprivate var textSize: Int {
            fields.reduce(uri.utf8.count + method.utf8.count + (digest?.utf8.count ?? 0)) { size, field in
                field.reduce(size) { $0 + $1.utf8.count + 5 }
            }
        }

        var transferRequest: TransferRequest {
            var request = TransferRequest(
                uri, method: Method(rawValue: method), fields: Fields(fields.map { ($0.first ?? "", $0.last ?? "") }))
            for (algorithm, bytes) in digest.flatMap({ DigestField(fieldLines: [$0]) })?.values ?? [] {
                request.expectedDigests[algorithm] = bytes
            }
            return request
        }

        var isValid: Bool {
            let request = transferRequest
            return RequestURI(uri)?.text == uri && Fields.isValidName(method) && fields.allSatisfy { $0.count == 2 }
                && request.fields.firstInvalid == nil && !request.fields.contains { Fields.isSecret($0.name) }
                // A digest that cannot be read must not be ignored.
                && digest == request.digestField?.serialized
        }
    }

    /// Identifies the transfer through all its resumptions.
    var id: UUID
    /// Counts the tickets issued for the transfer so far.
    var generation: Int
    /// The time at which the transfer was created, in seconds since 1970.
    var createdAt: Int64
    /// Whether the data is valid only as long as the ticket of its transfer allows it.
    var hasTicket: Bool
    var request: Request
    var content: Content

    /// Whether the JSON of this record is certainly less than 64 KiB. The JSON of a character has at most six times its
    /// bytes.
    var isSmall: Bool {
        guard case .upload(let checkpoint) = content else { return false }
        let path = checkpoint.source.file?.path.bytes.count ?? 0
        return request.textSize + checkpoint.resumption.uri.utf8.count + path < 8 << 10
    }

    var ticket: ResumeTicket? { hasTicket ? ResumeTicket(id: id, generation: generation) : nil }

    var isValid: Bool {
        guard (0..<1 << 53).contains(generation), createdAt >= 0, request.isValid else { return false }
        return switch content {
        case .upload(let checkpoint): checkpoint.isValid
        case .download(let checkpoint): checkpoint.isValid
        }
    }
}

extension ResumeRecord.Content: Codable {
    private enum CodingKeys: String, CodingKey { case upload, download }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard container.allKeys.count == 1 else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "one of upload and download is needed"))
        }
        if let checkpoint = try container.decodeIfPresent(UploadCheckpoint.self, forKey: .upload) {
            self = .upload(checkpoint)
        } else {
            self = .download(try container.decode(DownloadCheckpoint.self, forKey: .download))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .upload(let checkpoint): try container.encode(checkpoint, forKey: .upload)
        case .download(let checkpoint): try container.encode(checkpoint, forKey: .download)
        }
    }
}

/// The part of the resume data that only uploads, or only downloads, have.
protocol TransferCheckpoint: Sendable, Hashable {
    var content: ResumeRecord.Content { get }

    /// Whether a later process needs this checkpoint in place of the last one that the caller received.
    /// - Parameter age: the time in nanoseconds since the caller received the last one.
    func supersedes(_ lastSaved: Self, age: Int64) -> Bool
}

/// The part of resume data that describes an upload.
struct UploadCheckpoint: Sendable, Hashable, Codable {
    var resumption: UploadResumption
    var source: SourceRecord

    var isValid: Bool {
        let maximum = UploadLimits.largestInteger
        guard RequestURI(resumption.uri)?.text == resumption.uri, (0...maximum).contains(resumption.acknowledged),
            source.isValid
        else { return false }
        if let length = resumption.length {
            guard (0...maximum).contains(length), resumption.acknowledged <= length,
                source.size == nil || source.size == length
            else { return false }
        }
        let limits = resumption.limits
        let values = [limits.maxSize, limits.minSize, limits.maxAppendSize, limits.minAppendSize, limits.maxAge]
        return values.allSatisfy { $0.map { (0...maximum).contains($0) } ?? true } && (resumption.expires ?? 0) >= 0
    }
}

extension UploadCheckpoint: TransferCheckpoint {
    var content: ResumeRecord.Content { .upload(self) }

    /// Returns whether this checkpoint has to be saved in place of the last one. If only the offset and the remaining
    /// lifetime differ, it need not: the client requests the offset from the server in any case, and the lifetime
    /// decreases with every response.
    func supersedes(_ lastSaved: UploadCheckpoint, age: Int64) -> Bool {
        var new = self
        var old = lastSaved
        new.resumption.acknowledged = 0
        old.resumption.acknowledged = 0
        new.resumption.limits.maxAge = nil
        old.resumption.limits.maxAge = nil
        if let expires = new.resumption.expires, let before = old.resumption.expires, abs(expires - before) <= 5 {
            new.resumption.expires = before
        }
        return new != old
    }
}

/// The part of resume data that describes a download.
struct DownloadCheckpoint: Sendable, Hashable, Codable {
    /// The absolute path of the destination; `nil` for a file that the caller moves.
    var destination: FilePath?
    /// A directory above the destination, below which no symbolic link is followed; `nil`: they are followed.
    var root: FilePath?
    /// The name of the partial file, beside the destination or in the storage directory: `.<name>.<UUID>.part` or
    /// `<UUID>.part`.
    var partialName: FilePath
    /// The inode of the partial file.
    var inode: UInt64
    /// The number of bytes of the representation at the beginning of the partial file.
    var received: Int64
    /// The number of these bytes that were on stable storage.
    var synchronized: Int64
    /// The boot identifier of the system when `received` was written.
    var bootID: String
    /// SHA-256 of the last 64 KiB of the bytes on stable storage, in hexadecimal.
    var tailDigest: String?
    /// SHA-256 of all bytes that were received and not on stable storage, in hexadecimal; `nil` if there were none.
    var spanDigest: String?

    /// The validators and the length of the representation, as the server sent them.
    var entityTag: String?
    var lastModified: String?
    /// `Date` of the response with `lastModified`.
    var date: String?
    var total: Int64?
    var mediaType: String?
    var contentCoding: String?
    /// The value of `Repr-Digest` (RFC 9530).
    var digest: String?

    /// The checkpoint of the earlier representation, until this one replaces it: one element, or none.
    var earlier: [DownloadCheckpoint]?

    var isValid: Bool {
        let range: ClosedRange<Int64> = 0...Int64.max
        guard range.contains(received), range.contains(synchronized), synchronized <= received else { return false }
        if let total, total < received { return false }
        if let destination, !destination.isAbsolute || destination.hasNUL { return false }
        if let root, destination?.relative(to: root) == nil { return false }
        if let earlier {
            let isOne = earlier.count <= 1 && earlier.allSatisfy { $0.earlier == nil && $0.destination == destination }
            guard isOne, earlier.allSatisfy({ $0.isValid && $0.partialName != partialName }) else { return false }
        }
        if let tailDigest, tailDigest.utf8.count != 64 { return false }
        if let spanDigest, spanDigest.utf8.count != 64 { return false }
        return PartialFileName.isValid(partialName, for: destination?.lastComponent)
    }
}

extension DownloadCheckpoint: TransferCheckpoint {
    /// The minimum time in nanoseconds between two checkpoints that differ only in the bytes.
    private static let checkpointInterval: Int64 = 500_000_000

    var content: ResumeRecord.Content { .download(self) }

    func supersedes(_ lastSaved: DownloadCheckpoint, age: Int64) -> Bool {
        withoutBytes != lastSaved.withoutBytes || (self != lastSaved && age >= Self.checkpointInterval)
    }

    /// This checkpoint as if nothing had been received.
    private var withoutBytes: DownloadCheckpoint {
        var checkpoint = self
        checkpoint.received = 0
        checkpoint.synchronized = 0
        checkpoint.tailDigest = nil
        checkpoint.spanDigest = nil
        return checkpoint
    }
}

/// Identifies the source of an upload.
struct SourceRecord: Sendable, Hashable, Codable {
    /// The properties that identify one state of one file.
    struct File: Sendable, Hashable, Codable {
        /// The absolute path without symbolic links.
        var path: FilePath
        /// The time of the last change of the content, in nanoseconds since 1970.
        var modified: Int64
        var inode: UInt64
        /// The number of the file system. It is only for information and not compared, because it may be different
        /// after a restart of the machine.
        var device: UInt64
        var owner: UInt32
    }

    var file: File?
    /// The size in bytes; `nil` if it was unknown.
    var size: Int64?
    /// SHA-256 over parts of the content, in hexadecimal. The parts depend on the kind of source.
    var sample: String?

    var isValid: Bool {
        if let size, size < 0 { return false }
        if let sample, sample.utf8.count != 64 { return false }
        guard let file else { return true }
        return file.path.isAbsolute && !file.path.hasNUL && size != nil && sample != nil
    }

    /// The differences which prove that the sources of both records have different bytes, for messages; empty if there
    /// are none.
    func differences(from other: SourceRecord) -> [String] {
        var found: [String] = []
        if let size, let theirs = other.size, size != theirs { found.append("size") }
        if let file, let theirs = other.file {
            // A change of the modification time is always a difference: equal samples prove nothing about the middle.
            if file.modified != theirs.modified { found.append("modification time") }
            if file.inode != theirs.inode { found.append("inode") }
            if sample != other.sample { found.append("content") }
        } else if file == nil, other.file == nil, let sample, let theirs = other.sample, sample != theirs {
            // If only one of the sources is a file, their samples are not compared.
            found.append("content")
        }
        return found
    }
}
