import Foundation
import Glibc
import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite struct FileSourceTests {
    let directory: TemporaryDirectory
    let path: String
    let bytes: [UInt8]

    init() throws {
        directory = try TemporaryDirectory()
        var generator = SeededGenerator(seed: 5)
        bytes = (0..<200_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
        path = try directory.file("source.bin", bytes)
    }

    private func read(_ source: some UploadSource, at offset: Int64, _ count: Int = 1000) throws -> [UInt8] {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
        defer { buffer.deallocate() }
        return Array(buffer[..<(try source.read(into: buffer, at: offset))])
    }

    private func code(_ body: () throws(TransferError) -> Void) -> TransferError.Code? {
        do throws(TransferError) {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test("bytes are read at any offset")
    func reading() throws {
        let source = try FileSource(path: path)
        #expect(source.length == 200_000)
        #expect(try read(source, at: 0) == Array(bytes[..<1000]))
        #expect(try read(source, at: 199_900) == Array(bytes[199_900...]))
        #expect(try read(source, at: 200_000).isEmpty)
        let memory = DataSource(Data([9]) + Data(bytes))
        #expect(try read(memory, at: 5_001) == Array(bytes[5_000..<6_000]))
        #expect(try read(DataSource((Data([9]) + Data(bytes)).dropFirst()), at: 5_000) == Array(bytes[5_000..<6_000]))
    }

    @Test(
        "a file that was shortened, extended or written to after it was opened cannot be read as a source",
        arguments: ["shrink", "grow", "touch"])
    func change(kind: String) throws {
        let source = try FileSource(path: path)
        let writer = try FileDescriptor.open(path, [.readWrite])
        switch kind {
        case "shrink": try writer.truncate(to: 199_999)
        case "grow": try writer.truncate(to: 200_001)
        default: try writer.setModified(.init(seconds: 1, nanoseconds: 2))
        }
        #expect(!source.isUnchanged)
        #expect(throws: SourceError.self) { try read(source, at: 0) }
    }

    @Test(
        "a file that replaces the source does not affect an open source, and is detected when the path is opened again")
    func replacement() throws {
        let source = try FileSource(path: path)
        let record = try source.record()
        #expect(record.differences(from: try FileSource(path: path).record()) == [])
        let other = try directory.file("other", bytes)
        try FileDescriptor.open(other, [.readWrite]).setModified(
            try FileDescriptor.open(path, [.readOnly]).status().modified)
        #expect(rename(other, path) == 0)
        #expect(try read(source, at: 0) == Array(bytes[..<1000]))
        #expect(source.isUnchanged)
        #expect(record.differences(from: try FileSource(path: path).record()) == ["inode"])
    }

    @Test("the differences contain the property of the file that has changed", arguments: ["grow", "touch"])
    func differences(kind: String) throws {
        let record = try FileSource(path: path).record()
        let writer = try FileDescriptor.open(path, [.readWrite])
        let modified = try writer.status().modified
        if kind == "grow" { try writer.truncate(to: 200_001) }
        try writer.setModified(kind == "touch" ? .init(seconds: 1, nanoseconds: 2) : modified)
        let expected = kind == "touch" ? ["modification time"] : ["size", "content"]
        #expect(record.differences(from: try FileSource(path: path).record()) == expected)
    }

    @Test(
        "a changed byte near the start or the end is detected although size and times are the same",
        arguments: [0, 150_000, 199_999])
    func sample(place: Int) throws {
        let record = try FileSource(path: path).record()
        let writer = try FileDescriptor.open(path, [.readWrite])
        let modified = try writer.status().modified
        let changed = [bytes[place] ^ 1]
        try changed.withUnsafeBytes { try writer.write($0, at: Int64(place)) }
        try writer.setModified(modified)
        #expect(record.differences(from: try FileSource(path: path).record()) == ["content"])
    }

    @Test(
        "the sample of a file is the digest of its first 64 KiB, followed by the last 64 KiB of the remaining bytes",
        arguments: [0, 1, 65_536, 65_537, 100_000, 131_072, 131_073, 200_000])
    func sampledBytes(size: Int) throws {
        let content = bytes[..<size]
        let source = try FileSource(path: try directory.file("\(size)", Array(content)))
        // The sample of short data in memory is the digest of all its bytes.
        let sampled = DataSource(Data(content.prefix(65_536) + content.dropFirst(65_536).suffix(65_536)))
        #expect(try source.record().sample == sampled.record().sample)
    }

    @Test("data in memory is identified by all its bytes, and large data by blocks at several positions")
    func memory() throws {
        var large = Data(count: 20 << 20)
        let record = try DataSource(large).record()
        #expect(record.differences(from: try DataSource(large).record()) == [])
        large[large.count - 1] = 1
        #expect(record.differences(from: try DataSource(large).record()) == ["content"])
        #expect(record.differences(from: try DataSource(Data(count: 5)).record()) == ["size", "content"])
        var small = Data(bytes)
        let smallRecord = try DataSource(small).record()
        small[100_000] ^= 1
        #expect(smallRecord.differences(from: try DataSource(small).record()) == ["content"])
    }

    @Test("a symbolic link is followed if the caller passes its path, but not if resume data contains its path")
    func links() throws {
        let link = directory.path + "/link"
        #expect(symlink(path, link) == 0)
        let source = try FileSource(path: link)
        #expect(source.path == path)
        var file = try #require(try source.record().file)
        #expect(code { () throws(TransferError) in _ = try FileSource(recorded: file) } == nil)
        file.path = FilePath(link)
        #expect(code { () throws(TransferError) in _ = try FileSource(recorded: file) } == .noSuchSource)
        file.path = FilePath(path)
        file.owner += 1
        #expect(code { () throws(TransferError) in _ = try FileSource(recorded: file) } == .sourceChanged)
    }

    @Test("only a regular file is accepted as a source", arguments: ["absent", "directory", "fifo", "", "file/below"])
    func noSource(kind: String) throws {
        let name = directory.path + "/it"
        if kind == "directory" { try FileDescriptor.makeDirectory(name) }
        if kind == "fifo" { #expect(mkfifo(name, 0o600) == 0) }
        let path = kind.isEmpty ? "" : kind == "file/below" ? path + "/below" : name
        #expect(code { () throws(TransferError) in _ = try FileSource(path: path) } == .noSuchSource)
    }

    @Test("an empty file is accepted as a source")
    func empty() throws {
        let source = try FileSource(path: try directory.file("empty", []))
        #expect(source.length == 0)
        #expect(try read(source, at: 0).isEmpty)
        #expect(try source.record().isValid)
    }
}
