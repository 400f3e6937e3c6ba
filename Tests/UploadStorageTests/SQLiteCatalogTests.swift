import HTTPSemantics
import CSQLite
import Foundation
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

@Suite struct SQLiteCatalogTests {
    private func withDirectory(_ body: (String) throws -> Void) throws {
        let directory = try TemporaryDirectory()
        try body(directory.path)
    }

    /// - Parameter number: determines the id, and so the pages of the database; nil for a random id.
    private func row(_ offset: Int64 = 0, number: UInt64? = nil) -> CatalogRow {
        let id = number.map { UploadID(high: $0 &* 0x9E37_79B9_7F4A_7C15, low: $0) } ?? UploadID()
        return CatalogRow(
            id: id, blob: id.text, upload: .testing(length: 9), createdAt: 5, expiresAt: 6, epoch: 1,
            offset: offset, length: nil, phase: .receiving, intent: nil, digestStates: [[1, 2]])
    }

    private func advance(_ row: CatalogRow, epoch: Int64, offset: Int64) -> CatalogChange {
        .advance(
            CatalogChange.Advance(id: row.id, epoch: epoch, offset: offset, length: nil, digestStates: []))
    }

    @Test("rows are read as they were written, and changes with an older epoch are refused")
    func rows() throws {
        try withDirectory { directory in
            let catalog = try SQLiteCatalog(path: directory + "/c", durability: .acknowledged)
            let row = row()
            try catalog.commit(.insert(row))
            #expect(try catalog.row(row.id) == row)
            #expect(throws: StoreError.self) { try catalog.commit(.insert(row)) }
            try catalog.commit(advance(row, epoch: 3, offset: 7))
            #expect(throws: StoreError.superseded) { try catalog.commit(advance(row, epoch: 2, offset: 8)) }
            try catalog.commit(advance(row, epoch: 3, offset: 5))
            #expect(try catalog.row(row.id)?.offset == 7)
            #expect(try catalog.expired(at: 6, limit: 9) == [row.id])
            #expect(try catalog.needsBlob(row.blob))
            try catalog.commit(
                .invalidate(
                    CatalogChange.Invalidation(
                        id: row.id, epoch: 3, reason: "because", expiresAt: nil, upload: row.upload.withoutFields)))
            #expect(try catalog.row(row.id)?.phase == .invalid(reason: "because"))
            #expect(throws: StoreError.superseded) { try catalog.commit(advance(row, epoch: 4, offset: 9)) }
            #expect(try catalog.unfinishedRows() == [])
            #expect(try !catalog.needsBlob(row.blob))
            let removed = try catalog.commit(.delete([CatalogChange.Removal(id: row.id, epoch: 9)]))
            #expect(removed.invalid == 1 && removed.finished == 1 && removed.unfinished == 0)
            #expect(try catalog.row(row.id) == nil)
            catalog.close()
            #expect(throws: StoreError.superseded) { try catalog.commit(.probe) }
        }
    }

    @Test("an intent prevents all other changes of the row")
    func intents() throws {
        try withDirectory { directory in
            let catalog = try SQLiteCatalog(path: directory + "/c", durability: .acknowledged)
            let row = row(3)
            try catalog.commit(.insert(row))
            let intent = PublicationIntent(
                name: try name("a"), replaced: "t", identity: "1", response: Response(status: 201),
                refused: Response(status: 409))
            try catalog.commit(.recordIntent(row.id, epoch: 2, intent))
            #expect(throws: StoreError.superseded) { try catalog.commit(advance(row, epoch: 2, offset: 9)) }
            #expect(throws: StoreError.superseded) { try catalog.commit(.markProcessing(row.id, epoch: 2)) }
            #expect(try catalog.row(row.id)?.intent == intent)
            #expect(try catalog.processing(after: nil, limit: 9) == [row.id])
            #expect(try catalog.processing(after: row.id, limit: 9) == [])
            #expect(try catalog.processingCount() == 1)
            #expect(throws: StoreError.superseded) { try catalog.commit(.withdraw(row.id, epoch: 1)) }
            let file = FileRecord(name: "a", principal: "p", size: 3)
            try catalog.commit(
                .complete(
                    CatalogChange.Completion(
                        id: row.id, epoch: 2, offset: 3, response: intent.response, expiresAt: 1, file: file,
                        upload: row.upload.withoutFields)))
            #expect(try catalog.row(row.id)?.phase == .complete(intent.response))
            #expect(try catalog.file("a") == file)
            #expect(try catalog.publishedBytes(of: "p") == 3)
        }
    }

    @Test("a new offset writes one page, and no index; after a mark it also ends the processing")
    func pagesOfAnOffset() throws {
        try withDirectory { directory in
            let catalog = try SQLiteCatalog(path: directory + "/c", durability: .acknowledged)
            let row = row()
            try catalog.commit(.insert(row))
            func logSize() throws -> Int64 { try FileDescriptor.open(directory + "/c-wal", [.readOnly]).status().size }
            let before = try logSize()
            for offset in 1...5 { try catalog.commit(advance(row, epoch: 2, offset: Int64(offset))) }
            // Each page in the log has a header of 24 bytes.
            #expect(try logSize() - before == 5 * (4096 + 24))
            try catalog.commit(.markProcessing(row.id, epoch: 2))
            #expect(try catalog.row(row.id)?.phase == .processing)
            try catalog.commit(advance(row, epoch: 2, offset: 7))
            #expect(try catalog.row(row.id)?.phase == .receiving)
            #expect(try catalog.row(row.id)?.offset == 7)
            catalog.close()
        }
    }

    @Test("concurrent commits share transactions")
    func groupCommit() throws {
        try withDirectory { directory in
            let catalog = try SQLiteCatalog(path: directory + "/c", durability: .acknowledged)
            let rows = (0..<8).map { _ in row() }
            let failures = Counter()
            let threads = try rows.map { row in
                try WorkerThread(name: "client") {
                    do throws(StoreError) {
                        try catalog.commit(.insert(row))
                        for offset in 1...25 { try catalog.commit(advance(row, epoch: 1, offset: Int64(offset))) }
                    } catch {
                        failures.next()
                    }
                }
            }
            for thread in threads { thread.join() }
            #expect(failures.value == 0)
            #expect(catalog.statistics.commits == 8 * 26)
            #expect(catalog.statistics.transactions < catalog.statistics.commits)
            #expect(try rows.allSatisfy { try catalog.row($0.id)?.offset == 25 })
        }
    }

    private func database(_ path: String, _ sql: String) throws {
        let connection = try SQLiteConnection(path: path)
        try connection.execute(sql)
    }

    @Test("databases of other applications or newer versions and files of other formats are refused and not changed")
    func refusals() throws {
        try withDirectory { directory in
            let foreign = directory + "/foreign"
            try database(foreign, "CREATE TABLE t (x); INSERT INTO t VALUES (1)")
            #expect(throws: StoreError.foreignData("onward.sqlite is the database of another application")) {
                try SQLiteCatalog(path: foreign, durability: .acknowledged)
            }
            let text = directory + "/text"
            try Data(repeating: 65, count: 5000).write(to: URL(fileURLWithPath: text))
            #expect(throws: StoreError.foreignData("onward.sqlite is not an SQLite database")) {
                try SQLiteCatalog(path: text, durability: .acknowledged)
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: text)) == Data(repeating: 65, count: 5000))
            let newer = directory + "/newer"
            try SQLiteCatalog(path: newer, durability: .acknowledged).close()
            try database(newer, "PRAGMA user_version = 99")
            #expect(throws: StoreError.newerSchema(99)) { try SQLiteCatalog(path: newer, durability: .acknowledged) }
        }
    }

    // MARK: Stops

    /// - Parameter page: the number of the page, counted from the end of the file, beginning with 1.
    private func damage(_ path: String, page: Int = 1) throws {
        // The process seems to have been killed, and the disk to be defective.
        try database(path, "UPDATE marks SET value = 0 WHERE name = 'clean-stop'; PRAGMA wal_checkpoint(TRUNCATE)")
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
            let row = row()
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
            for number in 0..<200 { try catalog.commit(.insert(row(number: UInt64(number)))) }
            catalog.close()
            let clean = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(!clean.needsVerification)
            clean.close()
            try damage(path)
            let damaged = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(damaged.needsVerification)
            try damaged.commit(.probe)
            let error = #expect(throws: StoreError.self) { try damaged.verify() }
            #expect(error?.code == "damaged-catalogue")
            #expect(throws: try #require(error)) { try damaged.commit(.probe) }
            damaged.close()
            // The database is not marked as verified.
            let again = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(again.needsVerification)
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
            for number in 0..<200 { try catalog.commit(.insert(row(number: UInt64(number)))) }
            catalog.close()
            if !wasClean { try database(path, "UPDATE marks SET value = 0 WHERE name = 'clean-stop'") }
            try database(path, "PRAGMA wal_checkpoint(TRUNCATE)")
            let damaged = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(damaged.needsVerification == !wasClean && damaged.savedTotals == nil)
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
        #expect(damaged.health() == Health(ready: false, reasons: ["damaged-catalogue"]))
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
        try database(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        let marks = try SQLiteConnection(path: path).rows(
            "SELECT rootpage FROM sqlite_schema WHERE name IN ('marks', 'usage', 'files')")
        try damageLeaves(path, sparing: marks.compactMap { $0[0].integer })
        let reports = Counter()
        opened.onDamage { _ in reports.next() }
        #expect(opened.health().ready)
        let error = #expect(throws: StoreError.self) {
            if isRead {
                for id in ids { _ = try opened.record(id) }
            } else {
                for _ in 0..<50 { try opened.create(.testing()).release() }
            }
        }
        #expect(error?.code == "damaged-catalogue")
        #expect(opened.health() == Health(ready: false, reasons: ["damaged-catalogue"]))
        _ = opened.sweepPart()
        #expect(reports.value == 1)
        #expect(throws: try #require(error)) { try opened.create(.testing()) }
        opened.close()
        // The next start counts and verifies the catalog.
        let connection = try SQLiteConnection(path: path, readOnly: true)
        for mark in ["clean-stop", "totals-saved"] { #expect(try connection.mark(mark) == 0) }
    }

    @Test("saved totals and counted totals equal the totals of all rows")
    func totals() throws {
        try withDirectory { directory in
            let path = directory + "/c"
            let catalog = try SQLiteCatalog(path: path, durability: .acknowledged)
            var expected = CatalogTotals()
            for number in 0..<4500 {
                var row = row(Int64(number % 7))
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
                try catalog.commit(.insert(row))
                try catalog.commit(.recordFile(FileRecord(name: "ü\(number)", principal: "p1", size: 3), ending: nil))
                expected.usage["p1", default: Usage()].publishedBytes += 3
            }
            catalog.close(saving: nil)
            let counted = try SQLiteCatalog(path: path, durability: .acknowledged)
            #expect(counted.savedTotals == nil)
            // Changes after the opening are not counted.
            try counted.commit(.insert(row()))
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

    // MARK: Changes that fail

    /// Whether the condition becomes true within 4 s. This is shorter than the time that SQLite waits for a lock.
    private func wait(_ condition: () -> Bool) -> Bool {
        let deadline = SystemClock.monotonicNanoseconds() + 4_000_000_000
        while !condition() {
            if SystemClock.monotonicNanoseconds() > deadline { return false }
            SystemClock.pause(nanoseconds: 1_000_000)
        }
        return true
    }

    @Test(
        "a change whose statement fails affects no other change and has no effect",
        arguments: ["ABORT", "FAIL", "ROLLBACK"])
    func isolation(_ conduct: String) throws {
        try withDirectory { directory in
            let path = directory + "/c"
            try SQLiteCatalog(path: path, durability: .acknowledged).close()
            try database(
                path,
                """
                CREATE TRIGGER t BEFORE INSERT ON files WHEN new.name = 'bad'
                BEGIN SELECT RAISE(\(conduct), 'injected'); END
                """)
            let catalog = try SQLiteCatalog(path: path, durability: .acknowledged)
            let rows = (0..<12).map { _ in row(3) }
            for row in rows { try catalog.commit(.insert(row)) }
            // While `blocker` has the lock, the writer waits with the first change, and all others are collected in
            // one batch.
            let blocker = try SQLiteConnection(path: path)
            try blocker.execute("BEGIN IMMEDIATE")
            let begun = catalog.commits.counts.begun
            let first = try WorkerThread(name: "first") { _ = try? catalog.commit(.probe) }
            #expect(wait { catalog.commits.counts.begun == begun + 1 })
            let failures = Monitor<[Int: StoreError]>([:])
            let threads = try rows.enumerated().map { number, row in
                try WorkerThread(name: "client") {
                    do throws(StoreError) {
                        try catalog.commit(
                            .complete(
                                CatalogChange.Completion(
                                    id: row.id, epoch: 2, offset: 3, response: Response(status: 201),
                                    expiresAt: 9,
                                    file: FileRecord(name: number == 7 ? "bad" : "\(number)", principal: "p", size: 1),
                                    upload: row.upload)))
                    } catch {
                        failures.withLock { $0[number] = error }
                    }
                }
            }
            #expect(wait { catalog.commits.counts.waiting == rows.count })
            try blocker.execute("COMMIT")
            for thread in threads + [first] { thread.join() }
            #expect(failures.withLock { Array($0.keys) } == [7])
            for (number, row) in rows.enumerated() {
                let isComplete = try catalog.row(row.id)?.phase == .complete(Response(status: 201))
                #expect(isComplete == (number != 7))
                #expect(try (catalog.file("\(number)") != nil) == (number != 7))
            }
            catalog.close()
        }
    }

    @Test("a value that SQLite refuses causes only its own change to fail", arguments: [1, 2, 3])
    func refusedValues(_ seed: UInt64) throws {
        try withDirectory { directory in
            let catalog = try SQLiteCatalog(path: directory + "/c", durability: .acknowledged)
            var generator = SeededGenerator(seed: seed)
            let isBad = (0..<60).map { _ in Bool.random(using: &generator) }
            let failures = Monitor<[Int]>([])
            let threads = try isBad.enumerated().map { number, isBad in
                // The schema has a CHECK on the offset.
                let row = row(isBad ? -1 : 4)
                return try WorkerThread(name: "client") {
                    do throws(StoreError) { try catalog.commit(.insert(row)) } catch {
                        failures.withLock { $0.append(number) }
                    }
                }
            }
            for thread in threads { thread.join() }
            #expect(failures.withLock { $0.sorted() } == isBad.indices.filter { isBad[$0] })
            catalog.close()
        }
    }
}
