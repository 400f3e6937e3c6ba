import Digests
import ResumableTransfer
import SystemCalls

/// The files that an interrupted `put -r` has sent: a hash table in a file, so that the memory does not depend on their
/// number. The same command needs it for files that it cannot compare with those of the server. For other files it does not
/// read the table.
///
/// Nothing is synchronized: after a power loss, files that are missing in the table are compared or sent again. A record
/// is written after the server has confirmed the file, so it is never wrong.
final class SentTable: Sendable {
    /// A file that was sent, and that has not changed since.
    struct Record: Sendable, Hashable {
        fileprivate let tag: UInt32

        /// Whether the server can still have the file that was sent. Some servers send no entity tag in response to an
        /// upload.
        func matches(entityTag: String?) -> Bool { tag == 0 || tag == Self.tag(entityTag) }

        fileprivate static func tag(_ entityTag: String?) -> UInt32 {
            entityTag.map { UInt32(truncatingIfNeeded: SentTable.hash([Array($0.utf8)]) | 1) } ?? 0
        }
    }

    private struct State {
        var file: FileDescriptor
        /// The number of slots, a power of two.
        var slots: Int
        var used: Int
    }

    static let suffix: FilePath = ".sent"
    /// The first bytes of the file, in place of a record.
    private static let header = Array("onward sent 0001".utf8)
    /// Key, attributes and entity tag: 8, 4 and 4 bytes. The key 0 is that of an unused slot.
    private static let slotSize = 16
    /// The number of slots of an empty table. Only the parts of the file that are written need space.
    private static let minSlots = 1 << 16

    private let name: FilePath
    /// The directory for states; `nil` if it cannot be used.
    private let directory: PrivateDirectory?
    private let scope: [UInt8]
    /// The open table; `nil` if it cannot be used.
    private let state: Monitor<State?>

    /// Opens the table of a command, which must be locked by this process, or creates an empty one.
    init(of command: TransferIdentity, in directory: PrivateDirectory?) {
        name = FilePath(command.name) + Self.suffix
        scope = Array("\(command.path.bytes.count):".utf8) + command.path.bytes + Array(command.url.utf8)
        self.directory = directory
        state = Monitor(nil)
        let opened = directory.flatMap { try? Self.open(name, in: $0) }
        state.withLock { $0 = opened }
    }

    private static func open(_ name: FilePath, in directory: PrivateDirectory) throws(Errno) -> State {
        let file = try directory.openFile(name)
        let slots = Int(clamping: try file.status().size) / slotSize - 1
        guard slots >= minSlots, slots & (slots - 1) == 0, try bytes(of: file, at: 0) == header else {
            return try create(minSlots, file)
        }
        var used = 0
        try each(of: file, slots) { (_) throws(Errno) in used += 1 }
        return State(file: file, slots: slots, used: used)
    }

    private static func create(_ slots: Int, _ file: FileDescriptor) throws(Errno) -> State {
        try file.truncate(to: 0)
        try file.truncate(to: Int64((slots + 1) * slotSize))
        try file.write(header, at: 0)
        return State(file: file, slots: slots, used: 0)
    }

    /// The record of a file; `nil` if it was not sent, or has changed since.
    func record(of file: LocalTree.File) -> Record? {
        let (key, attributes) = self.key(of: file)
        return state.withLock { state -> Record? in
            guard let table = state, let slot = try? Self.find(key, in: table), slot.attributes == attributes else {
                return nil
            }
            return Record(tag: slot.tag)
        }
    }

    /// Adds a file that the server has confirmed.
    /// - Parameter entityTag: the entity tag in the response.
    func insert(_ file: LocalTree.File, entityTag: String?) {
        let (key, attributes) = self.key(of: file)
        let slot = Slot(key: key, attributes: attributes, tag: Record.tag(entityTag))
        state.withLock { state in
            do throws(Errno) {
                guard var table = state else { return }
                if (table.used + 1) * 2 > table.slots { try grow(&table) }
                try Self.write(slot, to: &table)
                state = table
            } catch {
                // Without the table, the files are compared with those of the server.
                state = nil
            }
        }
    }

    /// Removes the table.
    func remove() {
        state.withLock { $0 = nil }
        directory?.remove(name)
    }

    private func grow(_ table: inout State) throws(Errno) {
        guard let directory else { return }
        let temporary = "." + name + ".new"
        directory.remove(temporary)
        var larger = try Self.create(table.slots * 4, directory.openFile(temporary))
        try Self.each(of: table.file, table.slots) { (slot) throws(Errno) in try Self.write(slot, to: &larger) }
        try directory.rename(temporary, to: name)
        table = larger
    }

    // MARK: Slots

    private struct Slot {
        var key: UInt64
        var attributes: UInt32
        var tag: UInt32

        init(key: UInt64, attributes: UInt32, tag: UInt32) {
            self.key = key
            self.attributes = attributes
            self.tag = tag
        }

        init(_ bytes: UnsafeRawBufferPointer) {
            key = bytes.loadUnaligned(as: UInt64.self)
            attributes = bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
            tag = bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self)
        }

        var bytes: [UInt8] {
            var bytes = [UInt8](repeating: 0, count: SentTable.slotSize)
            bytes.withUnsafeMutableBytes { buffer in
                buffer.storeBytes(of: key, as: UInt64.self)
                buffer.storeBytes(of: attributes, toByteOffset: 8, as: UInt32.self)
                buffer.storeBytes(of: tag, toByteOffset: 12, as: UInt32.self)
            }
            return bytes
        }
    }

    private func key(of file: LocalTree.File) -> (key: UInt64, attributes: UInt32) {
        let time = file.status.modified
        let values = [UInt64(file.status.size), UInt64(bitPattern: time.seconds), UInt64(bitPattern: time.nanoseconds)]
        let attributes = (values + [file.status.inode]).map { Array("\($0)".utf8) }
        return (Self.hash([scope, file.path.bytes]) | 1, UInt32(truncatingIfNeeded: Self.hash(attributes)))
    }

    /// 64 bits of SHA-256 over the parts, each with its length before it.
    private static func hash(_ parts: [[UInt8]]) -> UInt64 {
        var digest = RunningDigest(.sha256)
        for part in parts { (Array("\(part.count):".utf8) + part).withUnsafeBytes { digest.update($0) } }
        return digest.finalized().withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
    }

    private static func offset(_ index: Int) -> Int64 { Int64((index + 1) * slotSize) }

    private static func read(_ index: Int, of table: State) throws(Errno) -> Slot {
        try bytes(of: table.file, at: offset(index)).withUnsafeBytes { Slot($0) }
    }

    /// The bytes of one slot; zeros after the end of the file.
    private static func bytes(of file: FileDescriptor, at offset: Int64) throws(Errno) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: slotSize)
        _ = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(Errno) in
            try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
        }
        return bytes
    }

    /// The first index at which a key is searched.
    private static func start(_ key: UInt64, _ table: State) -> Int { Int(key >> 8) & (table.slots - 1) }

    private static func find(_ key: UInt64, in table: State) throws(Errno) -> Slot? {
        var index = start(key, table)
        while true {
            let slot = try read(index, of: table)
            if slot.key == key { return slot }
            if slot.key == 0 { return nil }
            index = (index + 1) & (table.slots - 1)
        }
    }

    private static func write(_ slot: Slot, to table: inout State) throws(Errno) {
        var index = start(slot.key, table)
        while true {
            let other = try read(index, of: table)
            if other.key == slot.key || other.key == 0 {
                if other.key == 0 { table.used += 1 }
                return try table.file.write(slot.bytes, at: offset(index))
            }
            index = (index + 1) & (table.slots - 1)
        }
    }

    /// Calls `body` with each used slot.
    private static func each(
        of file: FileDescriptor, _ slots: Int, _ body: (Slot) throws(Errno) -> Void
    ) throws(Errno) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: slotSize << 12, alignment: 16)
        defer { buffer.deallocate() }
        var index = 0
        while index < slots {
            let count = try file.read(into: buffer, at: offset(index)) / slotSize
            guard count > 0 else { return }
            for place in 0..<min(count, slots - index) {
                let slot = Slot(UnsafeRawBufferPointer(rebasing: buffer[(place * slotSize)..<((place + 1) * slotSize)]))
                if slot.key != 0 { try body(slot) }
            }
            index += count
        }
    }
}
