import Digests
import Foundation
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Checks of data directories that were changed while no server used them.
@Suite struct DataDirectoryCheckTests {
    /// A directory with one finished file, one unfinished upload of four bytes and one finished upload.
    private struct Fixture {
        private let directory: TemporaryDirectory
        let blob: String
        var path: String { directory.path + "/data" }

        init() throws {
            directory = try TemporaryDirectory()
            let path = directory.path + "/data"
            let store = try UploadStore.open(root: path, configuration: StoreConfiguration(minFree: 0))
            let first = try store.create(.testing(length: 3))
            try first.append("abc")
            _ = try first.publish(.testing(name("dir/a")))
            first.release()
            let second = try store.create(.testing(length: 8))
            try second.append("abcd")
            _ = try second.acknowledge()
            second.release()
            store.close()
            blob = try #require(try FileManager.default.contentsOfDirectory(atPath: path + "/uploads").first)
        }

        func sql(_ statement: String) throws { try SQLiteConnection(path: path + "/onward.sqlite").execute(statement) }
    }

    private func findings(_ path: String) throws -> [CheckFinding] {
        var findings: [CheckFinding] = []
        let summary = try DataDirectoryCheck(root: path).run { findings.append($0) }
        #expect(summary.findings == findings.count)
        #expect(summary.damages == findings.count { $0.kind.isDamage })
        return findings
    }

    /// The content, permissions and times of every file.
    private func snapshot(_ path: String) throws -> [String: String] {
        var result: [String: String] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
            let attributes = try FileManager.default.attributesOfItem(atPath: path + "/" + name)
            let content = FileManager.default.contents(atPath: path + "/" + name)?.base64EncodedString() ?? ""
            result[name] = "\(attributes[.modificationDate] ?? "") \(attributes[.posixPermissions] ?? "") \(content)"
        }
        return result
    }

    @Test(
        "Names whose first character combines with the slash before it are valid", arguments: ["\u{301}x", "\u{200D}"])
    func combining(segment: String) throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/data"
        let store = try UploadStore.open(root: path, configuration: StoreConfiguration(minFree: 0))
        let upload = try store.create(.testing(length: 3))
        try upload.append("abc")
        let name = try #require(PublishedName(segments: ["dir", segment]))
        _ = try upload.publish(.testing(name))
        upload.release()
        store.close()
        #expect(PublishedName(path: name.path)?.segments == ["dir", segment])
        #expect(try findings(path).isEmpty)
        try FileManager.default.removeItem(atPath: path + "/files/dir")
        #expect(try findings(path).map(\.kind) == [.fileRemoved])
    }

    enum Alteration: CaseIterable {
        case none, blobGone, blobShort, blobLong, strangeBytes, fileGone, fileChanged, fileCut, row, page, unlock
        case usage, count

        var expected: [CheckFinding.Kind] {
            switch self {
            case .none, .unlock: []
            case .blobGone: [.bytesMissing]
            case .blobShort: [.bytesShort]
            case .blobLong: [.bytesUnacknowledged]
            case .strangeBytes: [.bytesUnknown]
            case .fileGone: [.fileRemoved]
            case .fileChanged: [.fileChanged]
            case .fileCut: [.fileResized]
            case .row: [.rowUnreadable]
            case .page: [.catalogDamaged]
            case .usage, .count: [.totalsWrong]
            }
        }
    }

    private func apply(_ alteration: Alteration, on fixture: Fixture) throws {
        let blob = fixture.path + "/uploads/" + fixture.blob
        let file = fixture.path + "/files/dir/a"
        switch alteration {
        case .none: break
        case .blobGone: try FileManager.default.removeItem(atPath: blob)
        case .blobShort: truncate(blob, 3)
        case .blobLong: truncate(blob, 5)
        case .strangeBytes: try Data("x".utf8).write(to: URL(fileURLWithPath: fixture.path + "/uploads/strange"))
        case .fileGone: try FileManager.default.removeItem(atPath: file)
        case .fileChanged: try Data("abcdef".utf8).write(to: URL(fileURLWithPath: file))
        case .fileCut:
            let descriptor = try FileDescriptor.open(file, .readWrite)
            let time = try descriptor.status().modified
            try descriptor.truncate(to: 2)
            try descriptor.setModified(time)
        case .row: try fixture.sql("UPDATE uploads SET creation = x'0102' WHERE phase = 0")
        case .page:
            // The index gets an entry that its table does not have.
            try fixture.sql(
                """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, 'phase < 2', 'phase < 1') WHERE name = 'uploads_unfinished';
                UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL,', 'NOT NULL CHECK (0),') WHERE name = 'files';
                """)
        case .usage: try fixture.sql("UPDATE usage SET reserved = reserved + 1")
        case .count: try fixture.sql("UPDATE marks SET value = value + 1 WHERE name = 'complete'")
        case .unlock: try FileManager.default.removeItem(atPath: fixture.path + "/lock")
        }
    }

    @Test("a check reports the kind of each change or damage, and changes nothing", arguments: Alteration.allCases)
    func alterations(_ alteration: Alteration) throws {
        let fixture = try Fixture()
        try apply(alteration, on: fixture)
        let before = try snapshot(fixture.path)
        let found = try findings(fixture.path)
        #expect(Set(found.map(\.kind)) == Set(alteration.expected), "\(found)")
        #expect(try snapshot(fixture.path) == before)
    }

    @Test("the directory of a killed server is checked together with its write-ahead log")
    func unclean() throws {
        let fixture = try Fixture()
        let store = try UploadStore.open(root: fixture.path, configuration: StoreConfiguration(minFree: 0))
        let lease = try store.create(.testing(length: 8))
        try lease.append("abcdef")
        #expect(try lease.acknowledge() == 6)
        #expect(throws: StoreError.inUse) { try DataDirectoryCheck(root: fixture.path) }
        let copy = fixture.path + "-copy"
        defer { try? FileManager.default.removeItem(atPath: copy) }
        try FileManager.default.copyItem(atPath: fixture.path, toPath: copy)
        let names = try FileManager.default.contentsOfDirectory(atPath: copy + "/uploads")
        truncate(copy + "/uploads/" + (try #require(names.first { $0 != fixture.blob })), 5)
        let before = try snapshot(copy)
        // The files of a copy that FileManager makes have other times.
        let found = try findings(copy).filter { $0.kind != .fileChanged }
        #expect(found.map(\.kind) == [.bytesShort], "\(found)")
        #expect(try snapshot(copy) == before)
        lease.release()
        store.close()
        #expect(try findings(fixture.path) == [])
    }

    @Test("lost bytes of an upload in processing are reported, because they may have to be retained")
    func processing() throws {
        let fixture = try Fixture()
        let configuration = StoreConfiguration(minFree: 0, processingWait: .zero)
        let store = try UploadStore.open(root: fixture.path, configuration: configuration)
        let lease = try store.create(.testing(length: 4))
        try lease.append("abcd")
        try lease.beginProcessing(shouldMarkDurably: true)
        store.close()
        lease.release()
        let names = try FileManager.default.contentsOfDirectory(atPath: fixture.path + "/uploads")
        let blob = fixture.path + "/uploads/" + (try #require(names.first { $0 != fixture.blob }))
        #expect(try findings(fixture.path) == [])
        truncate(blob, 5)
        #expect(try findings(fixture.path) == [])
        truncate(blob, 3)
        #expect(try findings(fixture.path).map(\.kind) == [.bytesShort])
        try FileManager.default.removeItem(atPath: blob)
        #expect(try findings(fixture.path).map(\.kind) == [.bytesMissing])
    }

    @Test("directories and databases of other programs are refused and not changed")
    func refusals() throws {
        let fixture = try Fixture()
        #expect { try DataDirectoryCheck(root: fixture.path + "/files") } throws: {
            "\($0)".contains("no onward.sqlite")
        }
        #expect { try DataDirectoryCheck(root: fixture.path + "/none") } throws: { "\($0)".contains("ENOENT") }
        try fixture.sql("PRAGMA user_version = 99")
        let newer = try snapshot(fixture.path)
        #expect(throws: StoreError.newerSchema(99)) { try DataDirectoryCheck(root: fixture.path) }
        #expect(try snapshot(fixture.path) == newer)
        try fixture.sql("PRAGMA user_version = 1; PRAGMA application_id = 7")
        let foreign = try snapshot(fixture.path)
        #expect(throws: StoreError.foreignData("onward.sqlite is the database of another application")) {
            try DataDirectoryCheck(root: fixture.path)
        }
        #expect(try snapshot(fixture.path) == foreign)
        try Data(repeating: 65, count: 9000).write(to: URL(fileURLWithPath: fixture.path + "/onward.sqlite"))
        #expect(throws: StoreError.foreignData("onward.sqlite is not an SQLite database")) {
            try DataDirectoryCheck(root: fixture.path)
        }
    }

    @Test("a digest is reported for each published file at any depth")
    func digests() throws {
        let fixture = try Fixture()
        // No URL can contain the name of this file.
        try Data("abc".utf8).write(to: URL(filePath: fixture.path + "/files/B\\c"))
        var found: [String] = []
        try Data("abc".utf8).write(to: URL(filePath: fixture.path + "/files/a"))
        let check = try DataDirectoryCheck(root: fixture.path)
        // Each page of names has one name.
        check.maxNamesInMemory = 1
        let summary = try check.forEachDigest(
            { name, digest in found.append(name.path + " " + digest.hexadecimal) },
            failures: { Issue.record("\($0)") })
        // printf abc | sha256sum
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        #expect(found == ["B\\c " + digest, "a " + digest, "dir/a " + digest])
        #expect(summary.damages == 0)
    }
}
