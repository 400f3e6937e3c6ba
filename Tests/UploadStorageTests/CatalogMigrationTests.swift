import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

@Suite struct CatalogMigrationTests {
    /// A catalog with an older version of the schema, in a file with a write-ahead log, as a killed server leaves it.
    private struct OldCatalog {
        static let secret = "OLD-SECRET-VALUE"

        private let place: TemporaryDirectory
        var directory: String { place.path + "/data" }
        var path: String { directory + "/" + DataDirectory.catalogName }
        private(set) var rows: [CatalogRow] = []

        init(rows count: Int, version: Int = 1) throws {
            place = try TemporaryDirectory()
            let work = place.path + "/work"
            try FileManager.default.createDirectory(atPath: work, withIntermediateDirectories: true)
            let connection = try SQLiteConnection(path: work + "/" + DataDirectory.catalogName)
            for migration in CatalogSQL.migrations.prefix(version) {
                if case .script(let schema) = migration { try connection.execute(schema) }
            }
            try connection.execute(CatalogSQL.setApplicationID() + ";" + CatalogSQL.setUserVersion(version))
            try connection.execute("PRAGMA journal_mode = WAL")
            for number in 0..<count {
                var row = Self.row(number)
                if version > 1 { row.upload = Self.cleaned(row) }
                try connection.run(CatalogSQL.insertUpload, row.columns + [.text("anna")])
                // These pages are freed without being overwritten.
                if number % 3 == 0 {
                    try connection.run("DELETE FROM uploads WHERE id = ?", [.blob(row.id.bytes)])
                    continue
                }
                row.upload = Self.cleaned(row)
                rows.append(row)
                if number == count / 2 { _ = try connection.rows(CatalogSQL.checkpoint) }
            }
            try FileManager.default.copyItem(atPath: work, toPath: directory)
        }

        private static func row(_ number: Int) -> CatalogRow {
            var upload = NewUpload.testing(length: 9, digests: [.sha256])
            upload.target = "/files/x?token=" + secret
            upload.fields = [
                "Content-Type": "text/plain", "If-None-Match": "*", "X-Api-Key": "\(secret)-\(number)",
                "X-Long": String(repeating: secret, count: number % 5 == 0 ? 3000 : 3),
            ]
            return CatalogRow(
                id: UploadID(), blob: UploadID().text, upload: upload, createdAt: 5, expiresAt: 6, epoch: 1, offset: 0,
                length: nil, phase: number % 2 == 0 ? .complete(Response(status: 201)) : .receiving, intent: nil,
                digestStates: [])
        }

        private static func cleaned(_ row: CatalogRow) -> NewUpload {
            var upload = row.isUnfinished ? row.upload : row.upload.withoutFields
            upload.target = "/files/x"
            if row.isUnfinished { upload.fields = ["Content-Type": "text/plain", "If-None-Match": "*"] }
            return upload
        }

        /// The files that contain a value of the old rows.
        func filesWithSecrets(_ directory: String? = nil) throws -> [String] {
            let directory = directory ?? self.directory
            return try FileManager.default.contentsOfDirectory(atPath: directory).filter { name in
                // `contents` returns `nil` for a directory.
                let data = FileManager.default.contents(atPath: directory + "/" + name) ?? Data()
                return data.range(of: Data(Self.secret.utf8)) != nil
            }.sorted()
        }

        func expectMigrated(_ directory: String? = nil, sourceLocation: SourceLocation = #_sourceLocation) throws {
            let directory = directory ?? self.directory
            let catalog = try SQLiteCatalog(
                path: directory + "/" + DataDirectory.catalogName, durability: .acknowledged)
            // The catalog is open here, so its log exists.
            #expect(try filesWithSecrets(directory) == [], sourceLocation: sourceLocation)
            for row in rows { #expect(try catalog.row(row.id) == row, sourceLocation: sourceLocation) }
            let unfinished = rows.filter(\.isUnfinished)
            let expired = try catalog.expired(at: 6, limit: .max)
            #expect(Set(expired) == Set(unfinished.map(\.id)), sourceLocation: sourceLocation)
            let receiving = try catalog.receiving(after: nil, limit: 2)
            let first = unfinished.sorted { $0.id.bytes.lexicographicallyPrecedes($1.id.bytes) }.prefix(2)
            #expect(receiving.map(\.id) == first.map(\.id), sourceLocation: sourceLocation)
            #expect(receiving.map(\.blob) == first.map(\.blob), sourceLocation: sourceLocation)
            for row in rows {
                #expect(try catalog.needsBlob(row.blob) == row.isUnfinished, sourceLocation: sourceLocation)
            }
            let totals = try catalog.countTotals()
            #expect(totals.complete == rows.count - unfinished.count, sourceLocation: sourceLocation)
            #expect(totals.usage["anna"]?.uploads == unfinished.count, sourceLocation: sourceLocation)
            catalog.close()
            #expect(try filesWithSecrets(directory) == [], sourceLocation: sourceLocation)
        }
    }

    @Test("the migration of a catalog of the first version removes all values that uploads do not need from every file")
    func cleaned() throws {
        let old = try OldCatalog(rows: 700)
        #expect(try old.filesWithSecrets() == ["onward.sqlite", "onward.sqlite-wal"])
        try old.expectMigrated()
        // The migrated catalog is opened once more.
        try old.expectMigrated()
    }

    @Test("a migration that is interrupted after any step is repeated by the next start", arguments: [1, 3])
    func cutOff(version: Int) throws {
        let old = try OldCatalog(rows: 500, version: version)
        var copies: [String] = []
        do {
            let connection = try SQLiteConnection(path: old.path)
            try connection.execute(CatalogSQL.configureWriter(.acknowledged))
            var migration = CatalogMigration(connection, in: old.directory)
            migration.afterStep = {
                let copy = "\(old.directory)-\(copies.count)"
                try FileManager.default.copyItem(atPath: old.directory, toPath: copy)
                copies.append(copy)
            }
            try migration.run(from: version)
        }
        #expect(copies.count >= (version == 1 ? 8 : 3))
        for copy in copies { try old.expectMigrated(copy) }
        #expect(try old.filesWithSecrets() == [])
    }

    @Test(
        "without space for the migration the start fails with the needed and the free size, and a later start succeeds")
    func noSpace() throws {
        let old = try OldCatalog(rows: 60)
        do {
            let connection = try SQLiteConnection(path: old.path)
            var migration = CatalogMigration(connection, in: old.directory)
            migration.freeSpace = { 1000 }
            let error = #expect(throws: StoreError.self) { try migration.run(from: 1) }
            #expect("\(error as Any)".contains("needs") && "\(error as Any)".contains("1000 are free"))
            #expect(try connection.requireCatalog() == 1)
        }
        #expect(try !old.filesWithSecrets().isEmpty)
        try old.expectMigrated()
    }

    @Test("a check of an older directory reports the pending migration and changes nothing")
    func check() throws {
        let old = try OldCatalog(rows: 60)
        for name in ["files", "uploads"] {
            try FileManager.default.createDirectory(
                atPath: old.directory + "/" + name, withIntermediateDirectories: true)
        }
        func findings() throws -> [CheckFinding] {
            var findings: [CheckFinding] = []
            let summary = try DataDirectoryCheck(root: old.directory).run { findings.append($0) }
            #expect(summary.uploads == old.rows.count && summary.damages == 0)
            return findings
        }
        let secrets = try old.filesWithSecrets()
        let found = try findings()
        let finding = try #require(found.first)
        #expect(found.count == 1)
        #expect(finding.kind == .catalogOlder && finding.path == DataDirectory.catalogName)
        let numbers = finding.detail.split(separator: " ").compactMap { Int($0) }
        #expect(numbers.count == 2 && numbers[0] > 16 << 20 && numbers[1] > 0, "\(finding.detail)")
        #expect(try old.filesWithSecrets() == secrets)
        try old.expectMigrated()
        #expect(try findings() == [])
    }

    @Test("a catalog that another program is reading is not marked as clean")
    func otherReader() throws {
        let old = try OldCatalog(rows: 60)
        let reader = try SQLiteConnection(path: old.path, isReadOnly: true)
        try reader.execute("BEGIN; SELECT count(*) FROM uploads")
        #expect { try SQLiteCatalog(path: old.path, durability: .acknowledged, lockTimeout: 100) } throws: {
            "\($0)".contains("another program")
        }
        try reader.execute("COMMIT")
        try old.expectMigrated()
    }
}
