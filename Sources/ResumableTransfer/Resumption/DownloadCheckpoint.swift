import HTTPSemantics
import SystemCalls

/// What resume data contains of a download.
struct DownloadCheckpoint: Sendable, Hashable, Codable {
    /// The absolute path of the destination; `nil` for a file that the caller moves.
    var destination: FilePath?
    /// The name of the partial file, beside the destination or in the storage directory: `.<name>.<UUID>.part` or
    /// `<UUID>.part`.
    var partialName: FilePath
    /// The inode of the partial file.
    var inode: UInt64
    /// Bytes of the representation at the beginning of the partial file.
    var received: Int64
    /// How many of them were on stable storage.
    var synchronized: Int64
    /// The boot identifier of the system when `received` was written.
    var bootID: String
    /// SHA-256 of the last 64 KiB of what was on stable storage, in hexadecimal.
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

    /// The bytes of the representation before, until this one replaces it: one element, or none.
    var earlier: [DownloadCheckpoint]?

    var isValid: Bool {
        let range: ClosedRange<Int64> = 0...Int64.max
        guard range.contains(received), range.contains(synchronized), synchronized <= received else { return false }
        if let total, total < received { return false }
        if let destination, !destination.isAbsolute || destination.containsNUL { return false }
        if let earlier {
            let isOne = earlier.count <= 1 && earlier.allSatisfy { $0.earlier == nil && $0.destination == destination }
            guard isOne, earlier.allSatisfy({ $0.isValid && $0.partialName != partialName }) else { return false }
        }
        if let tailDigest, tailDigest.utf8.count != 64 { return false }
        if let spanDigest, spanDigest.utf8.count != 64 { return false }
        return PartialFile.isName(partialName, for: destination?.lastComponent)
    }
}

extension DownloadCheckpoint: TransferCheckpoint {
    /// The least time between two checkpoints that differ only in the bytes received, in nanoseconds.
    private static let checkpointInterval: Int64 = 500_000_000

    var content: ResumeRecord.Content { .download(self) }

    func supersedes(_ handedOut: DownloadCheckpoint, age: Int64) -> Bool {
        synchronizedPart != handedOut.synchronizedPart || (self != handedOut && age >= Self.checkpointInterval)
    }

    /// The same without the bytes that are not on stable storage.
    private var synchronizedPart: DownloadCheckpoint {
        var checkpoint = self
        checkpoint.received = synchronized
        checkpoint.spanDigest = nil
        return checkpoint
    }
}
