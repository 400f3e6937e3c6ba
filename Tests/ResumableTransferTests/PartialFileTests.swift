import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("The partial file of a download")
struct PartialFileTests {
    private let directory: TemporaryDirectory
    private let location: PartialFileLocation
    private let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

    init() throws {
        directory = try TemporaryDirectory()
        let storage = TransferStorage(path: FilePath(directory.path + "/storage"))
        location = try #require(try PartialFileLocation.open(.file(directory.path + "/result.bin"), storage: storage))
    }

    /// Writes a partial file, closes it and returns its checkpoint.
    /// - Parameter synchronized: the number of bytes on stable storage; a digest covers the other bytes.
    private func writePartialFile(_ count: Int = 150_000, synchronized: Int = 150_000) throws -> DownloadCheckpoint {
        let partial = try PartialFile.create(in: location)
        try partial.begin()
        try partial.linkName()
        try bytes[..<synchronized].withUnsafeBytes { try partial.write($0) }
        #expect(partial.synchronize() == nil)
        try bytes[synchronized..<count].withUnsafeBytes { try partial.write($0) }
        partial.updateSpan()
        let mark = partial.mark
        return DownloadCheckpoint(
            destination: FilePath(directory.path + "/result.bin"), partialName: partial.name, inode: partial.inode,
            received: mark.span?.end ?? mark.position, synchronized: mark.position, bootID: BootIdentity.current,
            tailDigest: mark.tailDigest, spanDigest: mark.span?.digest, entityTag: "\"a\"", total: 200_000)
    }

    private func path(_ record: DownloadCheckpoint) -> String { directory.path + "/" + record.partialName.repairedText }

    /// The offset at which a later run resumes; `nil` if it starts again from the beginning.
    private func position(_ record: DownloadCheckpoint) throws -> Int64? {
        switch try PartialFile.open(record, in: location) {
        case .usable(let partial): return partial.position
        case .unusable: return nil
        case .busy:
            Issue.record("busy")
            return nil
        }
    }

    private func change(_ record: DownloadCheckpoint, _ body: (FileDescriptor) throws -> Void) throws {
        try body(FileDescriptor.open(path(record), .readWrite))
    }

    private var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? [] }

    @Test("a partial file that never got a name can become the result")
    func nameless() throws {
        let partial = try PartialFile.create(in: location)
        try partial.begin()
        try bytes.withUnsafeBytes { try partial.write($0) }
        // The server sends another representation.
        try partial.begin()
        try bytes.withUnsafeBytes { try partial.write($0) }
        #expect(names.isEmpty)
        partial.remove()
        #expect(try partial.publish() == FilePath(directory.path + "/result.bin"))
        #expect(names == ["result.bin"])
        #expect([UInt8](try Data(contentsOf: URL(filePath: directory.path + "/result.bin"))) == bytes)
        let other = try PartialFile.create(in: location)
        try other.linkName()
        try other.linkName()
        #expect(Set(names) == ["result.bin", other.name.repairedText])
    }

    // MARK: Resuming

    @Test("a partial file is continued from its checkpoint, and resume data can contain that checkpoint")
    func resumesFromCheckpoint() throws {
        let record = try writePartialFile()
        #expect(record.isValid)
        #expect(try position(record) == 150_000)
    }

    @Test("bytes that the checkpoint does not cover are not used, even if the system was not restarted")
    func longer() throws {
        let record = try writePartialFile()
        try change(record) { file in try bytes[150_000..<160_000].withUnsafeBytes { try file.write($0, at: 150_000) } }
        #expect(try position(record) == 150_000)
    }

    @Test("after a restart of the system only synchronized bytes are used")
    func otherRun() throws {
        var record = try writePartialFile()
        record.bootID = "another"
        try change(record) { file in try bytes[150_000..<160_000].withUnsafeBytes { try file.write($0, at: 150_000) } }
        #expect(try position(record) == 150_000)
        #expect(try FileDescriptor.open(path(record), .readOnly).status().size == 150_000)
        record = try writePartialFile(synchronized: 90_000)
        record.bootID = ""
        #expect(record.received == 150_000)
        #expect(try position(record) == 90_000)
    }

    @Test(
        "without a restart of the system all bytes that the digest covers are used, even those not on stable storage")
    func unsynchronized() throws {
        for synchronized in [0, 90_000] {
            let record = try writePartialFile(synchronized: synchronized)
            #expect(record.isValid && record.received == 150_000 && record.synchronized == synchronized)
            #expect(try position(record) == 150_000)
        }
    }

    @Test("if one of the bytes that are not on stable storage has changed, none of them is used", arguments: 0..<4)
    func garbledSpan(damage: Int) throws {
        for synchronized in [0, 20_000] {
            var record = try writePartialFile(synchronized: synchronized)
            try change(record) { file in
                switch damage {
                case 0: try [UInt8](repeating: 0, count: 100).withUnsafeBytes { try file.write($0, at: 30_000) }
                case 1: try file.truncate(to: 149_999)
                case 2: try [UInt8(0)].withUnsafeBytes { try file.write($0, at: 149_999) }
                default: record.spanDigest = nil
                }
            }
            #expect(try position(record) == Int64(synchronized))
        }
    }

    @Test("the digest covers all bytes after the mark and reads each of them once; a new mark resets it")
    func longestSpan() throws {
        let partial = try PartialFile.create(in: location)
        try partial.begin()
        let block = [UInt8](repeating: 5, count: 3 << 20)
        for count in 1...3 {
            try block.withUnsafeBytes { try partial.write($0) }
            partial.updateSpan()
            let end = Int64(count * block.count)
            #expect(partial.mark.position == 0 && partial.mark.span?.end == end)
            #expect(try partial.mark.span?.digest == partial.digest(of: 0..<end))
        }
        #expect(!partial.needsSpanUpdate())
        #expect(partial.synchronize() == nil)
        #expect(partial.mark.position == 9 << 20 && partial.mark.span == nil)
        partial.updateSpan()
        #expect(partial.mark.span == nil)
    }

    @Test("a partial file whose bytes have changed is removed and not continued")
    func garbled() throws {
        for damage in 0..<3 {
            let record = try writePartialFile()
            try change(record) { file in
                switch damage {
                case 0: try [UInt8(0)].withUnsafeBytes { try file.write($0, at: 149_000) }
                case 1: try file.truncate(to: 149_999)
                default: try file.truncate(to: 200_001)
                }
            }
            #expect(try position(record) == nil)
            #expect(names.isEmpty)
        }
    }

    @Test("a link, a FIFO, a directory, a file with two names and a different file are neither used nor changed")
    func otherFileKinds() throws {
        for kind in 0..<5 {
            let record = try writePartialFile()
            let path = path(record)
            let kept = directory.path + "/kept"
            #expect(rename(path, kept) == 0)
            switch kind {
            case 0: #expect(symlink(kept, path) == 0)
            case 1: #expect(mkfifo(path, 0o600) == 0)
            case 2: #expect(mkdir(path, 0o700) == 0)
            case 3: #expect(link(kept, path) == 0)
            default: _ = try directory.file(record.partialName.repairedText, [UInt8](bytes[..<150_000]))
            }
            #expect(try position(record) == nil)
            #expect(try PartialFile.discard(record, in: location))
            #expect(Set(names) == ["kept", record.partialName.repairedText])
            try FileManager.default.removeItem(atPath: path)
            try FileManager.default.removeItem(atPath: kept)
        }
    }

    @Test("a file of another user is not used", .enabled(if: geteuid() == 0, "needs root, to change an owner"))
    func otherOwner() throws {
        let record = try writePartialFile()
        #expect(chown(path(record), 12345, 12345) == 0)
        #expect(try position(record) == nil)
        #expect(names == [record.partialName.repairedText])
    }

    @Test("a partial file that a transfer is writing is neither used nor removed")
    func busy() throws {
        let record = try writePartialFile()
        guard case .usable(let partial) = try PartialFile.open(record, in: location) else {
            Issue.record("not usable")
            return
        }
        guard case .busy = try PartialFile.open(record, in: location) else {
            Issue.record("not busy")
            return
        }
        #expect(try !PartialFile.discard(record, in: location))
        #expect(names == [partial.name.repairedText])
    }

    @Test("a missing partial file is no error")
    func gone() throws {
        let record = try writePartialFile()
        #expect(try PartialFile.discard(record, in: location))
        #expect(names.isEmpty)
        #expect(try position(record) == nil)
        #expect(try PartialFile.discard(record, in: location))
    }

    // MARK: Content

    @Test("another representation is written to a file with another name, so that an older checkpoint matches no file")
    func otherName() throws {
        let record = try writePartialFile()
        guard case .usable(let partial) = try PartialFile.open(record, in: location) else {
            Issue.record("not usable")
            return
        }
        try partial.begin()
        try bytes.withUnsafeBytes { try partial.write($0) }
        #expect(partial.position == 200_000)
        #expect(names == [partial.name.repairedText])
        #expect(partial.name != record.partialName)
        #expect(try position(record) == nil)
    }

    @Test("bytes beyond the expected end are not written")
    func overrun() throws {
        let partial = try PartialFile.create(in: location)
        try partial.linkName()
        partial.resume(at: 0, end: 10)
        #expect(throws: Errno.fileTooLarge) { try bytes[..<11].withUnsafeBytes { try partial.write($0) } }
        #expect(partial.isOverrun && partial.position == 10 && partial.failure == nil)
        #expect(
            try FileDescriptor.open(directory.path + "/" + partial.name.repairedText, .readOnly).status().size == 10)
    }

    @Test("short parts of the content count at once, and are written to the file together")
    func shortParts() throws {
        let partial = try PartialFile.create(in: location)
        try partial.begin()
        try partial.linkName()
        let path = directory.path + "/" + partial.name.repairedText
        let size = { try FileDescriptor.open(path, .readOnly).status().size }
        let part = Array(bytes[..<(16 << 10)])
        for count in 1...15 {
            try part.withUnsafeBytes { try partial.write($0) }
            #expect(partial.position == count << 14)
        }
        #expect(try size() == 0)
        try part.withUnsafeBytes { try partial.write($0) }
        #expect(try size() == 256 << 10)
        try part.withUnsafeBytes { try partial.write($0) }
        #expect(try size() == 256 << 10 && partial.position == 17 << 14)
        #expect(partial.flush() == 17 << 14)
        #expect(try size() == 17 << 14)
        let expected = (0..<17).flatMap { _ in part }
        #expect([UInt8](try Data(contentsOf: URL(filePath: path))) == expected)
    }

    @Test("bytes that cannot be written to the file do not count as received")
    func failedFlush() throws {
        let partial = try PartialFile.create(in: location)
        try partial.begin()
        try bytes[..<1000].withUnsafeBytes { try partial.write($0) }
        #expect(partial.flush() == 1000)
        try bytes[1000..<3000].withUnsafeBytes { try partial.write($0) }
        #expect(partial.position == 3000)
        partial.close()
        #expect(partial.flush() == 1000)
        #expect(partial.position == 1000 && partial.failure == .badDescriptor)
        #expect(throws: Errno.badDescriptor) { try bytes.withUnsafeBytes { try partial.write($0) } }
    }

    @Test("at most 32 MiB are left unsynchronized, and the mark moves after a synchronization")
    func synchronization() throws {
        let partial = try PartialFile.create(in: location)
        try partial.begin()
        let block = [UInt8](repeating: 5, count: 1 << 20)
        for _ in 0..<31 { try block.withUnsafeBytes { try partial.write($0) } }
        #expect(!partial.needsSynchronization())
        try block.withUnsafeBytes { try partial.write($0) }
        #expect(partial.needsSynchronization())
        #expect(!partial.needsSynchronization())
        #expect(partial.mark.position == 0)
        #expect(partial.synchronize() == nil)
        #expect(partial.mark.position == 32 << 20 && partial.mark.tailDigest?.utf8.count == 64)
        #expect(!partial.needsSynchronization())
    }

    @Test("after a failure to synchronize nothing more is written, and another attempt does not succeed")
    func failedSynchronization() throws {
        let partial = try PartialFile.create(in: location)
        try partial.begin()
        partial.close()
        #expect(partial.synchronize() == .badDescriptor)
        #expect(partial.synchronize() == .badDescriptor)
        #expect(partial.failure == .badDescriptor)
        #expect(throws: Errno.badDescriptor) { try bytes.withUnsafeBytes { try partial.write($0) } }
        #expect(throws: Errno.badDescriptor) { try partial.publish() }
    }

    // MARK: Publication

    @Test("the download replaces a file at its destination, and gets the permissions of that file")
    func publish() throws {
        let path = try directory.file("result.bin", [1, 2, 3])
        #expect(chmod(path, 0o640) == 0)
        let partial = try PartialFile.create(in: location)
        try partial.begin()
        try bytes.withUnsafeBytes { try partial.write($0) }
        #expect(try partial.publish() == FilePath(path))
        #expect(names == ["result.bin"])
        #expect([UInt8](try Data(contentsOf: URL(filePath: path))) == bytes)
        #expect(try FileDescriptor.open(path, .readOnly).status().permissions == 0o640)
    }

    @Test("a file that replaced the partial file does not become the result")
    func replaced() throws {
        let partial = try PartialFile.create(in: location)
        try partial.linkName()
        try FileManager.default.removeItem(atPath: directory.path + "/" + partial.name.repairedText)
        _ = try directory.file(partial.name.repairedText, [1])
        #expect(throws: Errno.noSuchFile) { try partial.publish() }
        partial.remove()
        #expect(names == [partial.name.repairedText])
    }

    // MARK: Names

    @Test(
        "names of partial files are short enough for a directory entry and are recognized",
        arguments: [
            "a", "r.bin", FilePath(String(repeating: "ä", count: 127)), "\u{301}x", FilePath([0x61, 0xF6]),
            FilePath([UInt8](repeating: 0xBF, count: 255)),
        ])
    func names(destination: FilePath) {
        let name = PartialFileName.make(for: destination)
        #expect(name.bytes.count <= 255)
        #expect(PartialFileName.isValid(name, for: destination))
        #expect(!PartialFileName.isValid(name, for: "other"))
        #expect(!PartialFileName.isValid(name, for: nil))
        #expect(PartialFileName.isValid(PartialFileName.make(for: nil), for: nil))
        #expect(!PartialFileName.isValid(destination, for: destination))
    }

    @Test("a long name that an earlier version shortened differently is recognized, and other names are not")
    func earlierNames() {
        let long = FilePath(String(repeating: "e\u{301}", count: 80))
        func name(_ stem: FilePath) -> FilePath { "." + stem + "." + FilePath(UUID().uuidString) + ".part" }
        #expect(PartialFileName.isValid(name(FilePath(String(repeating: "e\u{301}", count: 70))), for: long))
        #expect(!PartialFileName.isValid(name(FilePath(String(repeating: "e\u{301}", count: 72))), for: long))
        #expect(
            !PartialFileName.isValid(name("x"), for: long) && !PartialFileName.isValid(name("e\u{301}"), for: "\u{E9}"))
    }

    @Test("the mark and the span never end after the bytes in the file, while others are received")
    func markDuringWrites() async throws {
        let partial = try PartialFile.create(in: location)
        try partial.begin()
        try partial.linkName()
        let path = directory.path + "/" + partial.name.repairedText
        let part = [UInt8](repeating: 5, count: 16 << 10)
        let hasEnded = Monitor(false)
        async let writing: Void = onThread {
            defer { hasEnded.raise() }
            for _ in 0..<1000 { try part.withUnsafeBytes { try partial.write($0) } }
        }
        let missing = try await onThread { () -> [Int64] in
            var missing: [Int64] = []
            while !hasEnded.withLock({ $0 }) {
                if let error = partial.synchronize() { throw error }
                partial.updateSpan()
                let mark = partial.mark
                let size = try FileDescriptor.open(path, .readOnly).status().size
                missing.append((mark.span?.end ?? mark.position) - size)
            }
            return missing
        }
        try await writing
        #expect(!missing.isEmpty && missing.allSatisfy { $0 <= 0 })
    }
}
