import HTTPSemantics
import CSQLite
import Foundation
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Tests the start of a catalog after clean and unclean stops, and after damage.
@Suite struct SQLiteCatalogStopTests {
    /// - Parameter page: the number of the page, counted from the end of the file, beginning with 1.
    private func damage(_ path: String, page: Int = 1) throws {
        // The process seems to have been killed, and the disk to be defective.
        try execute(at: path, "UPDATE marks SET value = 0 WHERE name = 'clean-stop'; PRAGMA wal_checkpoint(TRUNCATE)")
        let file = try FileDescriptor.open(path, .readWrite)
        let size = try file.status().size
        let noise = [UInt8](repeating: 0xA5, count: 3000)
        try file.write(noise, at: size - Int64(page) * 4096 + 100)
    }

    /// Pages of the log are valid only if they have the salts of its header (sqlite.org/fileformat2.html#walformat).
    @Test("after an unclean stop the new log has other salts, so that no page of the old log is valid in it")
    func newSalts() throws {
        try withDirectory { directory in
            let (path, copy) = (directory + "/c", directory + "/copy")
            let catalog = try SQLiteCatalog(path: path, durability: .acknowledged)
            let row = CatalogRow.testing()
            try catalog.commit(.insert(row))
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
            }
            catalog.close()
            func salts() throws -> Data {
                let log = try Data(contentsOf: URL(fileURLWithPath: copy + "-wal"))
                try #require(log.count > 32)
                return log[16..<24]
            }
            let old = try salts()
            let next = try SQLiteCatalog(path: copy, durability: .acknowledged)
            try next.commit(.probe)
            #expect(try salts() != old)
            #expect(try next.row(row.id) == row)
            next.close()
        }
    }

    @Test(
        "after an unclean stop the database is checked in parallel with other work; damage prevents every later change")
    func uncleanStop() throws {
        try withDirectory { directory in
            let path = directory + "/c"
            let catalog = try SQLiteCatalog(path: path, durability: .acknowledged)
            for number in 0..<200 { try catalog.commit(.insert(CatalogRow.testing(number: UInt64(number)))) }
            catalog.close()
            let clean = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(!clean.isVerificationNeeded)
            clean.close()
            try damage(path)
            let damaged = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(damaged.isVerificationNeeded)
            try damaged.commit(.probe)
            let error = #expect(throws: StoreError.self) { try damaged.verify() }
            #expect(error?.code == "damaged-catalogue")
            #expect(throws: try #require(error)) { try damaged.commit(.probe) }
            damaged.close()
            // The database is not marked as verified.
            let again = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(again.isVerificationNeeded)
            again.close()
        }
    }

    @Test(
        "damage that the count detects prevents every later change, and the log can still be emptied",
        arguments: [true, false])
    func damageInCount(_ wasClean: Bool) throws {
        try withDirectory { directory in
            let path = directory + "/c"
            let catalog = try SQLiteCatalog(path: path, durability: .acknowledged)
            for number in 0..<200 { try catalog.commit(.insert(CatalogRow.testing(number: UInt64(number)))) }
            catalog.close()
            if !wasClean { try execute(at: path, "UPDATE marks SET value = 0 WHERE name = 'clean-stop'") }
            try execute(at: path, "PRAGMA wal_checkpoint(TRUNCATE)")
            let damaged = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(damaged.isVerificationNeeded == !wasClean && damaged.savedTotals == nil)
            try damaged.commit(.probe)
            try damageLeaves(path)
            let error = #expect(throws: StoreError.self) { try damaged.countTotals() }
            #expect(error?.code == "damaged-catalogue")
            #expect(throws: try #require(error)) { try damaged.commit(.probe) }
            // No open reader prevents a complete checkpoint of the log.
            let other = try SQLiteConnection(path: path)
            #expect(try other.rows(CatalogSQL.checkpoint).first?[0].integer == 0)
            #expect(!damaged.isVerified)
            damaged.close()
        }
    }

    /// Makes every leaf page that contains rows unreadable (sqlite.org/fileformat.html, "B-tree Pages").
    private func damageLeaves(_ path: String, sparing spared: [Int64] = []) throws {
        let file = try FileDescriptor.open(path, .readWrite)
        var kind: UInt8 = 0
        for page in stride(from: 4096, to: try file.status().size, by: 4096) where !spared.contains(page / 4096 + 1) {
            _ = try withUnsafeMutableBytes(of: &kind) { try file.read(into: $0, at: page) }
            kind = kind == 0x0A ? 0xA5 : kind
            _ = try withUnsafeBytes(of: &kind) { try file.write($0, at: page) }
        }
    }

    @Test("a store with a damaged catalog is not ready and changes nothing, but its files can be read")
    func damagedStore() async throws {
        let directory = try TemporaryDirectory()
        let root = directory.path + "/data"
        let store = try UploadStore.open(root: root, configuration: StoreConfiguration(minFree: 0))
        for number in 0..<300 {
            let lease = try store.create(.testing())
            try lease.append("x")
            if number == 0 { _ = try lease.publish(.testing(name("file"))) }
            lease.release()
        }
        store.close()
        let path = root + "/" + DataDirectory.catalogName
        let intact = try Data(contentsOf: URL(fileURLWithPath: path))
        var opened: UploadStore?
        // The start reads some pages, and refuses the directory if one of these pages is damaged. The ids determine
        // which pages are read.
        for page in 1...3 where opened == nil {
            try intact.write(to: URL(fileURLWithPath: path))
            try damage(path, page: page)
            opened = try? UploadStore.open(root: root, configuration: StoreConfiguration(minFree: 0))
        }
        let damaged = try #require(opened)
        let reports = Counter()
        damaged.onDamage { _ in reports.next() }
        #expect(try await happens { reports.value == 1 })
        #expect(damaged.health() == Health(isReady: false, reasons: ["damaged-catalogue"]))
        let error = #expect(throws: StoreError.self) { try damaged.create(.testing()) }
        #expect(error?.code == "damaged-catalogue")
        #expect(try damaged.area.openPublished(name("file")).file.readAll() == Array("x".utf8))
        damaged.close()
    }

    @Test(
        "damage that is detected after a clean stop prevents every later change, and the store is not ready",
        arguments: [true, false])
    func damageInUse(_ isRead: Bool) throws {
        let directory = try TemporaryDirectory()
        let root = directory.path + "/data"
        let configuration = StoreConfiguration(minFree: 0)
        let store = try UploadStore.open(root: root, configuration: configuration)
        let ids = try (0..<300).map { _ in
            let lease = try store.create(.testing())
            defer { lease.release() }
            return try #require(lease.id)
        }
        store.close()
        let path = root + "/" + DataDirectory.catalogName
        let opened = try UploadStore.open(root: root, configuration: configuration)
        try execute(at: path, "PRAGMA wal_checkpoint(TRUNCATE)")
        let marks = try SQLiteConnection(path: path).rows(
            "SELECT rootpage FROM sqlite_schema WHERE name IN ('marks', 'usage', 'files')")
        try damageLeaves(path, sparing: marks.compactMap { $0[0].integer })
        let reports = Counter()
        opened.onDamage { _ in reports.next() }
        #expect(opened.health().isReady)
        let error = #expect(throws: StoreError.self) {
            if isRead {
                for id in ids { _ = try opened.record(id) }
            } else {
                for _ in 0..<50 { try opened.create(.testing()).release() }
            }
        }
        #expect(error?.code == "damaged-catalogue")
        #expect(opened.health() == Health(isReady: false, reasons: ["damaged-catalogue"]))
        _ = opened.sweepPart()
        #expect(reports.value == 1)
        #expect(throws: try #require(error)) { try opened.create(.testing()) }
        opened.close()
        // The next start counts and verifies the catalog.
        let connection = try SQLiteConnection(path: path, isReadOnly: true)
        for mark in ["clean-stop", "totals-saved"] { #expect(try connection.mark(mark) == 0) }
    }

    @Test("saved totals and counted totals equal the totals of all rows")
    func totals() throws {
        try withDirectory { directory in
            let path = directory + "/c"
            let catalog = try SQLiteCatalog(path: path, durability: .acknowledged)
            var expected = CatalogTotals()
            var changes: [CatalogChange] = []
            for number in 0..<4500 {
                var row = CatalogRow.testing(Int64(number % 7))
                row.upload.principal = "p\(number % 3)"
                row.length = number % 2 == 0 ? nil : 11
                if number % 5 == 0 { row.phase = .complete(Response(status: 201)) }
                if number % 11 == 1 { row.phase = .invalid(reason: "r") }
                switch row.phase {
                case .complete: expected.complete += 1
                case .invalid: expected.invalid += 1
                default:
                    expected.usage[row.upload.principal, default: Usage()].uploads += 1
                    expected.usage[row.upload.principal, default: Usage()].reservedBytes += row.reservedBytes
                }
                changes.append(.insert(row))
                changes.append(.recordFile(FileRecord(name: "ü\(number)", principal: "p1", size: 3), ending: nil))
                expected.usage["p1", default: Usage()].publishedBytes += 3
            }
            for result in catalog.commit(changes) { _ = try result.get() }
            catalog.close(saving: nil)
            let counted = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(counted.savedTotals == nil)
            // Changes after the opening are not counted.
            try counted.commit(.insert(CatalogRow.testing()))
            #expect(try counted.countTotals() == expected)
            counted.close(saving: expected)
            let saved = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(saved.savedTotals == expected)
            saved.close(saving: nil)
            let after = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(after.savedTotals == nil)
            after.close()
        }
    }
}
