import CSQLite
import Foundation
import ResumableUpload
import SystemCalls
import Testing

@testable import UploadStorage

@Suite struct SQLiteCatalogueTests {
    private func withDirectory(_ body: (String) throws -> Void) throws {
        let path = NSTemporaryDirectory() + "onward-catalogue-" + UploadID().text
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        try body(path)
    }

    private func row(_ offset: Int64 = 0) -> CatalogueRow {
        CatalogueRow(
            id: UploadID(), blob: UploadID().text, upload: .testing(length: 9), createdAt: 5, expiresAt: 6, epoch: 1,
            offset: offset, length: nil, phase: .receiving, intent: nil, digestStates: [[1, 2]])
    }

    private func advance(_ row: CatalogueRow, epoch: Int64, offset: Int64) -> CatalogueChange {
        .advance(
            CatalogueChange.Advance(id: row.id, epoch: epoch, offset: offset, length: nil, digestStates: []))
    }

    @Test("rows come back as they were, and the fence holds in the statement itself")
    func rows() throws {
        try withDirectory { directory in
            let catalogue = try SQLiteCatalogue(path: directory + "/c", durability: .acknowledged)
            let row = row()
            try catalogue.commit(.insert(row))
            #expect(try catalogue.row(row.id) == row)
            #expect(throws: StoreError.self) { try catalogue.commit(.insert(row)) }
            try catalogue.commit(advance(row, epoch: 3, offset: 7))
            #expect(throws: StoreError.superseded) { try catalogue.commit(advance(row, epoch: 2, offset: 8)) }
            try catalogue.commit(advance(row, epoch: 3, offset: 5))
            #expect(try catalogue.row(row.id)?.offset == 7)
            #expect(try catalogue.expired(at: 6, limit: 9) == [row.id])
            #expect(try catalogue.needsBlob(row.blob))
            try catalogue.commit(
                .invalidate(
                    CatalogueChange.Invalidation(
                        id: row.id, epoch: 3, reason: "because", expiresAt: nil, upload: row.upload.withoutFields)))
            #expect(try catalogue.row(row.id)?.phase == .invalid(reason: "because"))
            #expect(throws: StoreError.superseded) { try catalogue.commit(advance(row, epoch: 4, offset: 9)) }
            #expect(try catalogue.unfinishedRows() == [])
            #expect(try !catalogue.needsBlob(row.blob))
            try catalogue.commit(.delete(row.id, epoch: 9))
            #expect(try catalogue.row(row.id) == nil)
            catalogue.close()
            #expect(throws: StoreError.superseded) { try catalogue.commit(.probe) }
        }
    }

    @Test("an intent keeps every other change of the row out")
    func intents() throws {
        try withDirectory { directory in
            let catalogue = try SQLiteCatalogue(path: directory + "/c", durability: .acknowledged)
            let row = row(3)
            try catalogue.commit(.insert(row))
            let intent = PublicationIntent(
                name: try name("a"), replaced: "t", identity: "1", response: FinalResponse(status: 201),
                refused: FinalResponse(status: 409))
            try catalogue.commit(.intend(row.id, epoch: 2, intent))
            #expect(throws: StoreError.superseded) { try catalogue.commit(advance(row, epoch: 2, offset: 9)) }
            #expect(throws: StoreError.superseded) { try catalogue.commit(.markProcessing(row.id, epoch: 2)) }
            #expect(try catalogue.row(row.id)?.intent == intent)
            #expect(try catalogue.processing() == [row.id])
            let file = FileRecord(name: "a", principal: "p", size: 3)
            try catalogue.commit(
                .complete(
                    CatalogueChange.Completion(
                        id: row.id, epoch: 2, offset: 3, response: intent.response, expiresAt: 1, file: file,
                        upload: row.upload.withoutFields)))
            #expect(try catalogue.row(row.id)?.phase == .complete(intent.response))
            #expect(try catalogue.file("a") == file)
            #expect(try catalogue.publishedBytes() == ["p": 3])
        }
    }

    @Test("concurrent commits share transactions")
    func groupCommit() throws {
        try withDirectory { directory in
            let catalogue = try SQLiteCatalogue(path: directory + "/c", durability: .acknowledged)
            let rows = (0..<8).map { _ in row() }
            let failures = Counter()
            let threads = try rows.map { row in
                try WorkerThread(name: "client") {
                    do throws(StoreError) {
                        try catalogue.commit(.insert(row))
                        for offset in 1...25 { try catalogue.commit(advance(row, epoch: 1, offset: Int64(offset))) }
                    } catch {
                        failures.add()
                    }
                }
            }
            for thread in threads { thread.join() }
            #expect(failures.value == 0)
            #expect(catalogue.statistics.commits == 8 * 26)
            #expect(catalogue.statistics.transactions < catalogue.statistics.commits)
            #expect(try rows.allSatisfy { try catalogue.row($0.id)?.offset == 25 })
        }
    }

    private func database(_ path: String, _ sql: String) throws {
        let connection = try SQLiteConnection(path: path)
        try connection.execute(sql)
    }

    @Test("databases of others, of newer versions and damaged ones are refused and left alone")
    func refusals() throws {
        try withDirectory { directory in
            let foreign = directory + "/foreign"
            try database(foreign, "CREATE TABLE t (x); INSERT INTO t VALUES (1)")
            #expect(throws: StoreError.foreignData("the catalogue's file is the database of another application")) {
                try SQLiteCatalogue(path: foreign, durability: .acknowledged)
            }
            let text = directory + "/text"
            try Data(repeating: 65, count: 5000).write(to: URL(fileURLWithPath: text))
            #expect(throws: StoreError.foreignData("the catalogue's file is no database")) {
                try SQLiteCatalogue(path: text, durability: .acknowledged)
            }
            #expect(try Data(contentsOf: URL(fileURLWithPath: text)) == Data(repeating: 65, count: 5000))
            let newer = directory + "/newer"
            try SQLiteCatalogue(path: newer, durability: .acknowledged).close()
            try database(newer, "PRAGMA user_version = 99")
            #expect(throws: StoreError.newerSchema(99)) { try SQLiteCatalogue(path: newer, durability: .acknowledged) }
        }
    }

    @Test("after an unclean stop the database is checked, after a clean one it opens as it is")
    func uncleanStop() throws {
        try withDirectory { directory in
            let path = directory + "/c"
            let catalogue = try SQLiteCatalogue(path: path, durability: .acknowledged)
            for _ in 0..<200 { try catalogue.commit(.insert(row())) }
            catalogue.close()
            try SQLiteCatalogue(path: path, durability: .acknowledged).close()
            // As if the process had been killed, and the disk had bitten.
            try database(path, "UPDATE marks SET value = 0 WHERE name = 'clean-stop'; PRAGMA wal_checkpoint(TRUNCATE)")
            let file = try FileDescriptor.open(path, .readWrite)
            let size = try file.status().size
            let noise = [UInt8](repeating: 0xA5, count: 3000)
            try noise.withUnsafeBytes { try file.write($0, at: size - 4096 + 100) }
            #expect(throws: StoreError.self) { try SQLiteCatalogue(path: path, durability: .acknowledged) }
        }
    }
}
