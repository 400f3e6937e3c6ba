import HTTPSemantics
import FoundationEssentials
import Glibc
import ResumableUpload
import SystemCalls
import Testing

@testable import UploadStorage

/// A large data directory, as a stopped or killed server leaves it.
struct LargeCatalog {
    var finished = 0
    /// The number of unfinished uploads, each with one byte.
    var unfinished = 0
    /// The number of published files, each with its record.
    var files = 0
    /// The number of files in uploads/ that belong to no upload.
    var orphans = 0
    var principals = 5
    /// Whether the server stopped cleanly; otherwise the directory is as after a crash.
    var hasCleanStop = true

    /// Returns a directory in memory if the system has one: the time of synchronization is not measured here.
    static func makeDirectory() throws -> String {
        let base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
        var template = Array((base + "/onward-large-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Errno.current }
        return template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }

    func make(at root: String) throws {
        try UploadStore.open(root: root, configuration: StoreConfiguration(minFree: 0)).close()
        do {
            let connection = try SQLiteConnection(path: root + "/onward.sqlite")
            try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; BEGIN")
            try insert(
                finished, .complete(HTTPSemantics.Response(status: 201, fields: ["Location": "/files/x"])), connection)
            try insert(unfinished, .receiving, connection)
            try connection.execute(
                """
                WITH RECURSIVE n (i) AS (SELECT 1 WHERE \(files) > 0 UNION ALL SELECT i + 1 FROM n WHERE i < \(files))
                INSERT INTO files SELECT 'd/f' || i, 'p' || (i % \(principals)), 1, 'x', 5, x'010000000000000000' FROM n;
                UPDATE marks SET value = 0 WHERE name = 'totals-saved';
                COMMIT; PRAGMA wal_checkpoint(TRUNCATE)
                """)
            for columns in try connection.rows("SELECT blob FROM uploads WHERE phase < 2") {
                try makeFile(root + "/uploads/" + (columns[0].text ?? ""))
            }
        }
        for number in 0..<orphans { try makeFile(root + "/uploads/orphan\(number)") }
        mkdir(root + "/files/d", 0o700)
        for number in 0..<files { try makeFile(root + "/files/d/f\(number + 1)") }
        // Counts the files and stores the result.
        let store = try UploadStore.open(root: root, configuration: StoreConfiguration(minFree: 0))
        #expect(store.usage(of: "p0").uploads == (unfinished + principals - 1) / principals)
        store.close()
        if !hasCleanStop {
            try SQLiteConnection(path: root + "/onward.sqlite").execute("UPDATE marks SET value = 0")
        }
    }

    /// Inserts `count` uploads, which differ only in their identifiers and principals.
    private func insert(_ count: Int, _ phase: UploadRecord.Phase, _ connection: SQLiteConnection) throws {
        guard count > 0 else { return }
        let upload = NewUpload(
            principal: "p0", method: .put, target: "/files/x", fields: ["Content-Type": "text/plain"], length: 9,
            expiresAt: 4_000_000_000)
        let row = CatalogRow(
            id: UploadID(), blob: UploadID().text, upload: upload, createdAt: 5, expiresAt: 4_000_000_000, epoch: 1,
            offset: 1, length: 9, phase: phase, intent: nil, digestStates: [])
        try connection.run(CatalogSQL.insertUpload, row.columns + [.text("p0")])
        try connection.run(
            """
            WITH RECURSIVE n (i) AS (SELECT 1 WHERE ?2 > 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)
            INSERT INTO uploads (\(CatalogSQL.columns), principal)
            SELECT randomblob(16), lower(hex(randomblob(16))), creation, created_at, expires_at, epoch, "offset", length,
                phase, response, reason, intent, digests, 'p' || (i % ?3)
            FROM n, uploads WHERE id = ?1
            """, [.blob(row.id.bytes), .integer(Int64(count)), .integer(Int64(principals))])
    }

    /// Creates a file of one byte.
    private func makeFile(_ path: String) throws {
        let number = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard number >= 0, ftruncate(number, 1) == 0 else { throw Errno.current }
        close(number)
    }
}
