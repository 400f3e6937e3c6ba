import Foundation
import ResumableTransfer
import SystemCalls

/// The list of the files that a command with several files has sent, so that the same command does not send them again.
/// The list also has the state of each upload that is so short that it needs no state file. If the server announces the
/// upload resource before the content is sent, the command appends the state before it sends the content. The list is a
/// file to which records are appended.
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
    fileprivate struct Record: Codable {
        static let currentVersion = 3

        var version: Int?
        /// A transfer of the command.
        var member: TransferIdentity?
        /// A file that was sent.
        var sent: Entry?
        /// The state of an upload that has begun. It is valid until the file was sent, or a later record has its path as
        /// `ended`.
        var begun: SavedTransfer?
        /// The path of a file whose upload has ended without success, or whose state is in a state file.
        var ended: FilePath?
    }

    /// A record that is appended to a list.
    struct Change: Sendable {
        fileprivate let record: Record
        fileprivate let line: [UInt8]

        private init(_ record: Record) throws(Errno) {
            self.record = record
            do { line = try RecordLines.line(record) } catch { throw .invalidArgument }
        }

        static func sent(_ entry: Entry) throws(Errno) -> Change { try Change(Record(sent: entry)) }
        static func begun(_ saved: SavedTransfer) throws(Errno) -> Change { try Change(Record(begun: saved)) }
        static func ended(_ path: FilePath) throws(Errno) -> Change { try Change(Record(ended: path)) }
    }

    /// The format of version 2: a single JSON text, which was written again for each file.
    private struct SingleText: Codable {
        var version: Int
        var members: [TransferIdentity]
        var entries: [Entry]
    }

    private static let prefix: FilePath = "several-"
    private static let suffix: FilePath = ".done"

    let fileName: FilePath
    private let states: PrivateDirectory
    private(set) var transfers: Set<TransferIdentity> = []
    private var entries: [FilePath: Entry] = [:]
    private var missing: Set<FilePath> = []
    /// The states of the uploads that have begun and not ended, by the paths of their files.
    private(set) var begun: [FilePath: SavedTransfer] = [:]
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
            // A line that another process is writing is read again when it is complete.
            position = Int64(data.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0)
            apply(data)
            guard !transfers.isEmpty else { return nil }
        }
        missing = Set(transfers.map(\.path)).subtracting(entries.keys)
    }

    /// Makes an empty list for a command with these transfers.
    /// - Parameter name: the name for these transfers, if it is known.
    init(of transfers: [TransferIdentity], named name: FilePath? = nil, in states: PrivateDirectory) throws {
        fileName = name ?? Self.name(of: transfers)
        self.states = states
        self.transfers = Set(transfers)
        missing = Set(transfers.map(\.path))
        try rewrite(transfers, [])
    }

    /// The name of the list for a command with these transfers.
    static func name(of transfers: [TransferIdentity]) -> FilePath {
        prefix + FilePath(TransferIdentity.digest(transfers.map { Array($0.name.utf8) })) + suffix
    }

    /// The names of all lists.
    static func names(in states: PrivateDirectory) -> [FilePath] { states.names(from: prefix, to: suffix) }

    private mutating func rewrite(_ transfers: [TransferIdentity], _ entries: [Entry]) throws {
        var bytes = try RecordLines.line(Record(version: Record.currentVersion))
        for transfer in transfers { bytes += try RecordLines.line(Record(member: transfer)) }
        for entry in entries { bytes += try RecordLines.line(Record(sent: entry)) }
        try states.replace(fileName, with: Data(bytes))
        position = Int64(bytes.count)
    }

    private mutating func apply(_ bytes: some Collection<UInt8>) {
        for record in RecordLines.records(Record.self, in: bytes) { apply(record) }
    }

    private mutating func apply(_ record: Record) {
        if let transfer = record.member { transfers.insert(transfer) }
        if let saved = record.begun { begun[saved.identity.path] = saved }
        if let path = record.ended ?? record.sent?.path { begun[path] = nil }
        guard let entry = record.sent else { return }
        entries[entry.path] = entry
        missing.remove(entry.path)
    }

    /// Reads what was appended since the last call.
    /// - Returns: whether the file still exists.
    mutating func refresh() -> Bool {
        if states.size(of: fileName) == position { return true }
        guard let appended = try? states.content(of: fileName, from: position) else { return false }
        // A line that another process is writing is read later, when it is complete.
        let complete = appended.prefix(through: appended.lastIndex(of: UInt8(ascii: "\n")) ?? -1)
        apply(complete)
        position += Int64(complete.count)
        return true
    }

    /// Whether all files have been sent.
    var isComplete: Bool { missing.isEmpty }

    var isEmpty: Bool { entries.isEmpty }

    /// Whether the command has this transfer.
    func has(_ transfer: TransferIdentity) -> Bool { transfers.contains(transfer) }

    /// The files that were sent.
    var sent: [FilePath] { Array(entries.keys) }

    /// Returns the entry of `path`; `nil` if there is none, or if the file has changed since it was sent.
    func entry(of path: FilePath) -> Entry? {
        guard let entry = entries[path], let now = try? path.status(), entry.matches(now) else { return nil }
        return entry
    }

    /// Appends the changes and waits until they are on stable storage. After that, the caller deletes the state of a
    /// file that was sent: if the deletion survived a power loss, but the change did not, the file would be sent again.
    mutating func append(_ changes: [Change]) throws(Errno) { try write(changes).synchronizeData() }

    /// Appends the changes.
    /// - Returns: the file, whose synchronization makes the changes durable.
    mutating func write(_ changes: [Change]) throws(Errno) -> FileDescriptor {
        let lines = changes.flatMap(\.line)
        let file = try states.append(lines, to: fileName)
        let size = try file.status().size
        // If another process has also appended, all records are read later.
        guard size == position + Int64(lines.count) else { return file }
        position = size
        for change in changes { apply(change.record) }
        return file
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
