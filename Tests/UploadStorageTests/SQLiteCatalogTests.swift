import HTTPSemantics
import CSQLite
import Foundation
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

@Suite struct SQLiteCatalogTests {
    private func advance(_ row: CatalogRow, epoch: Int64, offset: Int64) -> CatalogChange {
        .advance(
            CatalogChange.Advance(id: row.id, epoch: epoch, offset: offset, length: nil, digestStates: []))
    }

    @Test("rows are read as they were written, and changes with an older epoch are refused")
    func rows() throws {
        try withDirectory { directory in
            let catalog = try SQLiteCatalog(path: directory + "/c", durability: .acknowledged)
            let row = CatalogRow.testing()
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
            let row = CatalogRow.testing(3)
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
            let row = CatalogRow.testing()
            try catalog.commit(.insert(row))
            let before = try pagesInLog(directory)
            for offset in 1...5 { try catalog.commit(advance(row, epoch: 2, offset: Int64(offset))) }
            #expect(try pagesInLog(directory) - before == 5)
            try catalog.commit(.markProcessing(row.id, epoch: 2))
            #expect(try catalog.row(row.id)?.phase == .processing)
            try catalog.commit(advance(row, epoch: 2, offset: 7))
            #expect(try catalog.row(row.id)?.phase == .receiving)
            #expect(try catalog.row(row.id)?.offset == 7)
            catalog.close()
        }
    }

    @Test("the creation and the expiry of uploads write as many pages beside 20,000 finished uploads as beside none")
    func pagesOfUnfinishedUploads() throws {
        try withDirectory { directory in
            var pages: [[Int64]] = []
            for finished in [0, 20_000] {
                let place = directory + "/\(finished)"
                try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
                try SQLiteCatalog(path: place + "/c", durability: .relaxed).close()
                try execute(
                    at: place + "/c",
                    """
                    WITH RECURSIVE n (i) AS (SELECT 1 WHERE \(finished) > 0 UNION ALL SELECT i + 1 FROM n WHERE i < \(finished))
                    INSERT INTO uploads (\(CatalogSQL.columns), principal)
                    SELECT randomblob(16), hex(randomblob(16)), x'', 5, NULL, 1, 0, NULL, 2, x'', NULL, NULL, x'', 'p' FROM n
                    """)
                let catalog = try SQLiteCatalog(path: place + "/c", durability: .relaxed)
                let rows = (0..<100).map { _ in CatalogRow.testing() }
                let start = try pagesInLog(place)
                for row in rows { try catalog.commit(.insert(row)) }
                let created = try pagesInLog(place)
                try catalog.commit(.delete(rows.map { CatalogChange.Removal(id: $0.id, epoch: 1) }))
                pages.append([created - start, try pagesInLog(place) - created])
                catalog.close()
            }
            #expect(zip(pages[1], pages[0]).allSatisfy { $0 * 10 <= $1 * 12 }, "\(pages)")
        }
    }

    /// Returns the number of pages in the log of the catalog `c`. In the log, each page has a header of 24 bytes.
    private func pagesInLog(_ directory: String) throws -> Int64 {
        try FileDescriptor.open(directory + "/c-wal", [.readOnly]).status().size / (4096 + 24)
    }

    @Test("concurrent commits share transactions")
    func groupCommit() throws {
        try withDirectory { directory in
            let catalog = try SQLiteCatalog(path: directory + "/c", durability: .acknowledged)
            let rows = (0..<8).map { _ in CatalogRow.testing() }
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
            #expect(catalog.statistics.changes == 8 * 26)
            #expect(catalog.statistics.transactions < catalog.statistics.changes)
            #expect(try rows.allSatisfy { try catalog.row($0.id)?.offset == 25 })
        }
    }

    @Test("databases of other applications or newer versions and files of other formats are refused and not changed")
    func refusals() throws {
        try withDirectory { directory in
            let foreign = directory + "/foreign"
            try execute(at: foreign, "CREATE TABLE t (x); INSERT INTO t VALUES (1)")
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
            try execute(at: newer, "PRAGMA user_version = 99")
            #expect(throws: StoreError.newerSchema(99)) { try SQLiteCatalog(path: newer, durability: .acknowledged) }
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
            try execute(
                at:
                    path,
                """
                CREATE TRIGGER t BEFORE INSERT ON files WHEN new.name = 'bad'
                BEGIN SELECT RAISE(\(conduct), 'injected'); END
                """)
            let catalog = try SQLiteCatalog(path: path, durability: .acknowledged)
            let rows = (0..<12).map { _ in CatalogRow.testing(3) }
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
                let row = CatalogRow.testing(isBad ? -1 : 4)
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

extension CatalogRow {
    /// - Parameter number: determines the id, and so the pages of the database; `nil` for a random id.
    static func testing(_ offset: Int64 = 0, number: UInt64? = nil) -> CatalogRow {
        let id = number.map { UploadID(high: $0 &* 0x9E37_79B9_7F4A_7C15, low: $0) } ?? UploadID()
        return CatalogRow(
            id: id, blob: id.text, upload: .testing(length: 9), createdAt: 5, expiresAt: 6, epoch: 1,
            offset: offset, length: nil, phase: .receiving, intent: nil, digestStates: [[1, 2]])
    }
}

/// Executes a statement in a database.
func execute(at path: String, _ sql: String) throws { try SQLiteConnection(path: path).execute(sql) }

/// Runs `body` with the path of an empty directory.
func withDirectory(_ body: (String) throws -> Void) throws {
    let directory = try TemporaryDirectory()
    try body(directory.path)
}
