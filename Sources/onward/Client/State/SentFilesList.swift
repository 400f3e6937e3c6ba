import Digests
import Foundation
import ResumableTransfer
import SystemCalls

/// The list of the files that a command with several files has sent, so that the same command does not send them again.
/// The list is a file; one record is appended for each sent file.
///
/// The entire list is read once. After that, ``refresh()`` reads only what was appended since the last read.
struct SentFilesList {
    /// A file that was sent, with the attributes that it had then.
    struct Entry: Sendable, Hashable, Codable {
        var path: FilePath
        var size: Int64
        /// Nanoseconds since 1970.
        var modified: Int64
        var inode: UInt64
        /// The status of the response.
        var status: Int
        var location: String?
    }

    /// Each line of the file is a record with exactly one of these properties.
    private struct Record: Codable {
        static let currentVersion = 3

        var version: Int?
        /// A transfer of the command.
        var member: TransferIdentity?
        /// A file that was sent.
        var sent: Entry?
    }

    /// The format of version 2: a single JSON text, which was written again for each file.
    private struct SingleText: Codable {
        var version: Int
        var members: [TransferIdentity]
        var entries: [Entry]
    }

    static let prefix = "several-"
    static let suffix = ".done"

    let fileName: FilePath
    private let states: PrivateDirectory
    private(set) var transfers: Set<TransferIdentity> = []
    private var entries: [FilePath: Entry] = [:]
    private var missing: Set<FilePath> = []
    /// The position up to which the file was read.
    private var position: Int64 = 0

    /// Reads a list; `nil` if there is none that can be used.
    init?(_ fileName: FilePath, in states: PrivateDirectory) {
        self.fileName = fileName
        self.states = states
        guard let data = try? states.read(fileName, atMost: .max) else { return nil }
        if data.first == UInt8(ascii: "{") {
            guard let old = try? JSONDecoder().decode(SingleText.self, from: data), old.version == 2,
                !old.members.isEmpty
            else { return nil }
            transfers = Set(old.members)
            for entry in old.entries { entries[entry.path] = entry }
            guard (try? rewrite(old.members, old.entries)) != nil else { return nil }
        } else {
            position = Int64(data.count)
            apply(data)
            guard !transfers.isEmpty else { return nil }
        }
        missing = Set(transfers.map(\.path)).subtracting(entries.keys)
    }

    /// Makes an empty list for a command with these transfers.
    init(of transfers: [TransferIdentity], in states: PrivateDirectory) throws {
        fileName = Self.name(of: transfers)
        self.states = states
        self.transfers = Set(transfers)
        missing = Set(transfers.map(\.path))
        try rewrite(transfers, [])
    }

    /// The name of the list for a command with these transfers.
    static func name(of transfers: [TransferIdentity]) -> FilePath {
        FilePath(prefix + TransferIdentity.digest(transfers.map { Array($0.name.utf8) }) + suffix)
    }

    private mutating func rewrite(_ transfers: [TransferIdentity], _ entries: [Entry]) throws {
        var bytes = try RecordLines.line(Record(version: Record.currentVersion))
        for transfer in transfers { bytes += try RecordLines.line(Record(member: transfer)) }
        for entry in entries { bytes += try RecordLines.line(Record(sent: entry)) }
        try states.replace(fileName, with: Data(bytes))
        position = Int64(bytes.count)
    }

    private mutating func apply(_ bytes: some Collection<UInt8>) {
        for record in RecordLines.records(Record.self, in: bytes) {
            if let transfer = record.member { transfers.insert(transfer) }
            guard let entry = record.sent else { continue }
            entries[entry.path] = entry
            missing.remove(entry.path)
        }
    }

    /// Reads what was appended since the last call.
    /// - Returns: whether the file still exists.
    mutating func refresh() -> Bool {
        guard let appended = try? states.content(of: fileName, from: position) else { return false }
        // A line that another process is writing is read later, when it is complete.
        let complete = appended.prefix(through: appended.lastIndex(of: 0x0A) ?? -1)
        apply(complete)
        position += Int64(complete.count)
        return true
    }

    /// Whether all files have been sent.
    var isComplete: Bool { missing.isEmpty }

    var isEmpty: Bool { entries.isEmpty }

    /// The files that were sent.
    var sent: [FilePath] { Array(entries.keys) }

    /// Returns the entry of `path`; `nil` if there is none, or if the file has changed since it was sent.
    func entry(of path: FilePath) -> Entry? {
        guard let entry = entries[path], let now = try? path.status(), entry.matches(now) else { return nil }
        return entry
    }

    /// Appends the entry and waits until it is on stable storage. The caller then deletes the state of the upload: if
    /// only this deletion survived a power loss, and not the entry, the file would be sent again.
    func append(_ entry: Entry) throws(Errno) {
        guard let line = try? RecordLines.line(Record(sent: entry)) else { throw .invalidArgument }
        try states.append(line, to: fileName)
    }

    func remove() { states.remove(fileName) }
}

extension SentFilesList.Entry {
    /// - Parameter file: the attributes that the file had when it was opened.
    init(_ path: FilePath, _ file: FileStatus, status: Int, location: String?) {
        self.init(
            path: path, size: file.size, modified: Self.nanoseconds(file.modified), inode: file.inode, status: status,
            location: location)
    }

    /// Whether size, time and inode are unchanged.
    func matches(_ status: FileStatus) -> Bool {
        size == status.size && modified == Self.nanoseconds(status.modified) && inode == status.inode
    }

    private static func nanoseconds(_ time: FileStatus.Time) -> Int64 {
        time.seconds &* 1_000_000_000 &+ time.nanoseconds
    }
}

/// Records in a file that grows at its end: each one is a line with a checksum before its JSON text.
///
/// A record that was cut off by a crash, or altered, is left out. It does not harm the next one: each record also
/// begins with a line feed.
enum RecordLines {
    /// The bytes to append for a record.
    static func line(_ record: some Encodable) throws -> [UInt8] {
        let text = [UInt8](try JSONEncoder().encode(record))
        return [0x0A] + checksum(text[...]) + [0x20] + text + [0x0A]
    }

    /// The records whose lines are complete.
    static func records<Record: Decodable>(_ type: Record.Type, in bytes: some Collection<UInt8>) -> [Record] {
        let decoder = JSONDecoder()
        return bytes.split(separator: 0x0A).compactMap { line in
            let text = Array(line.dropFirst(checksumSize + 1))
            guard line.prefix(checksumSize).elementsEqual(checksum(text[...])) else { return nil }
            return try? decoder.decode(type, from: Data(text))
        }
    }

    private static let checksumSize = 8

    /// The first digits of the SHA-256.
    private static func checksum(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var digest = RunningDigest(.sha256)
        text.withUnsafeBytes { digest.update($0) }
        return Array(Array(digest.finalized().prefix(checksumSize / 2)).hexadecimal.utf8)
    }
}
