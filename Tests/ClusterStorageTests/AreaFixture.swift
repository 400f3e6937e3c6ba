import Glibc
import ObjectStorage
import PostgreSQL
import SystemCalls
import TestSupport
import UploadStorage

@testable import ClusterStorage

/// Blob areas of several nodes with one database and one object storage in memory, and the transactions of a catalog.
final class AreaFixture: Sendable {
    /// One node: its session and its area.
    final class Node: Sendable {
        let session: Int64
        let ledger = PieceLedger()
        let catalog: ClusterCatalog
        let area: ObjectBlobArea

        init(_ fixture: AreaFixture, _ limits: PieceLimits, objects: (any ObjectStore)?) throws {
            let rows = try fixture.database.run(
                DatabaseStatement(
                    "INSERT INTO onward.node (name, alive_until) VALUES ('test', 'infinity') RETURNING session"))
            let session = rows.integer(0, 0) ?? 0
            self.session = session
            let node = ClusterNode(database: fixture.database, session: session)
            catalog = ClusterCatalog(node: node, ledger: ledger, configuration: StoreConfiguration())
            area = try ObjectBlobArea(
                node: node, objects: objects ?? fixture.objects, ledger: ledger, limits: limits, writers: 3)
        }

        /// Publishes bytes as a plain upload does.
        @discardableResult
        func publish(
            _ name: String, as published: PublishedName, replacing tag: String? = nil
        ) throws -> PublishedFile.Attributes {
            let blob = try ledger.blob(name) ?? area.openBlob(name)
            defer { withExtendedLifetime(blob) {} }
            try blob.synchronize(including: .attributes)
            let attributes = try blob.attributes()
            let record = FileRecord(
                name: published.path, principal: "alice", size: attributes.size,
                modifiedSeconds: attributes.modifiedSeconds)
            try catalog.commit(
                .naming(
                    .recordFile(record, ending: nil), .file(published, attributes, blob: name, replaced: tag)))
            return attributes
        }

        deinit { area.close() }
    }

    /// The server of all tests, which starts for the first one and is released at the end of the process, and its
    /// databases that no test uses. To create a database takes longer than to empty it.
    private struct Shared {
        var server: PostgreSQLCluster?
        var free: [String] = []
        var count = 0

        mutating func nextDatabase() throws -> String {
            if let name = free.popLast() { return name }
            let server = try server ?? PostgreSQLCluster()
            if self.server == nil { atexit { AreaFixture.shared.withLock { $0.server = nil } } }
            self.server = server
            count += 1
            let name = "area\(count)"
            let created = try ChildProcess(
                PostgreSQLCluster.programs + "/createdb",
                ["-h", server.directory, "-p", "\(server.port)", "-U", "postgres", name])
            guard try created.awaitEnding() == .exited(0) else { throw TestFailure(created.errorOutput) }
            return name
        }
    }

    private static let shared = Monitor(Shared())

    private let name: String
    let database: Database
    let objects = MemoryObjectStore()

    init() throws {
        let (name, uri) = try Self.shared.withLock { shared in
            let name = try shared.nextDatabase()
            return (name, String(shared.server?.uri().dropLast("postgres".count) ?? "") + name)
        }
        self.name = name
        database = Database(try DatabaseURI(parsing: uri), connections: 3)
        try database.runScript("DROP SCHEMA IF EXISTS onward CASCADE")
        for (index, migration) in ClusterSQL.migrations.enumerated() {
            try database.runScript(ClusterSQL.script(index + 1, migration))
        }
    }

    deinit {
        database.close()
        Self.shared.withLock { $0.free.append(name) }
    }

    func node(_ limits: PieceLimits = PieceLimits(), objects: (any ObjectStore)? = nil) throws -> Node {
        try Node(self, limits, objects: objects)
    }

    @discardableResult
    func run(_ sql: String, _ parameters: [DatabaseValue] = []) throws -> DatabaseRows {
        try database.run(DatabaseStatement(sql, parameters))
    }

    func count(_ sql: String, _ parameters: [DatabaseValue] = []) throws -> Int64 {
        try run("SELECT count(*) FROM \(sql)", parameters).integer(0, 0) ?? -1
    }

    // MARK: The transactions of a catalog

    func insertUpload(_ blob: String, holder node: Node) throws {
        try run(
            """
            INSERT INTO onward.upload (id, blob, principal, creation, created_at, epoch, "offset", phase, digests, holder)
            VALUES ($1, $2, 'alice', '', 0, 1, 0, 0, '', $3)
            """, [.bytes(Array(blob.utf8)), .text(blob), .integer(node.session)])
    }

    /// Records the registered pieces of a blob, and its offset.
    func record(_ blob: String, offset: Int64, by node: Node) throws {
        guard let change = node.ledger.change(of: blob) else { return }
        do {
            _ = try database.transaction([
                DatabaseStatement(
                    "SELECT onward.put_pieces($1, $2, $3, $4, $5, $6)", [.text(blob)] + change.parameters),
                DatabaseStatement(
                    "UPDATE onward.upload SET \"offset\" = $2 WHERE blob = $1", [.text(blob), .integer(offset)]),
            ])
        } catch {
            node.ledger.rejected(change)
            throw error
        }
        node.ledger.recorded(change)
    }

    /// Inserts the pieces of a blob. Their objects, `data/BLOB/SESSION-INDEX`, do not exist.
    func insertPieces(_ blob: String, _ count: Int, of size: Int, by node: Node) throws {
        // The time of a statement is limited.
        for first in stride(from: 0, to: count, by: 50_000) {
            try run(
                """
                INSERT INTO onward.piece (blob, start, size, object)
                SELECT $1, n * $4, $4, 'data/' || $1 || '/' || $5::text || '-' || n FROM generate_series($2, $3) AS n
                """,
                [
                    .text(blob), .integer(Int64(first)), .integer(Int64(min(first + 50_000, count) - 1)),
                    .integer(Int64(size)), .integer(node.session),
                ])
        }
    }

    func endUpload(_ blob: String) throws {
        try run("UPDATE onward.upload SET phase = 2, holder = NULL WHERE blob = $1", [.text(blob)])
    }

    func end(_ node: Node) throws { try run("DELETE FROM onward.node WHERE session = $1", [.integer(node.session)]) }

    /// The keys of the objects with bytes.
    var dataObjects: Set<String> { Set(objects.contents.keys.filter { $0.hasPrefix("data/") }) }

    /// The keys of the objects that pieces name.
    func namedObjects() throws -> Set<String> {
        let rows = try run("SELECT object FROM onward.piece WHERE object IS NOT NULL")
        return Set((0..<rows.count).compactMap { rows.text($0, 0) })
    }

    func pieceSizes(_ blob: String) throws -> [Int64] {
        let rows = try run("SELECT size FROM onward.piece WHERE blob = $1 ORDER BY start", [.text(blob)])
        return (0..<rows.count).compactMap { rows.integer($0, 0) }
    }

    func collector(_ adjust: (inout PieceCollector.Settings) -> Void = { _ in }) -> PieceCollector {
        PieceCollector(database: database, objects: objects, settings: collectorSettings(adjust))
    }

    /// The settings of a collector that waits for nothing.
    func collectorSettings(
        _ adjust: (inout PieceCollector.Settings) -> Void = { _ in }
    ) -> PieceCollector.Settings {
        var settings = PieceCollector.Settings()
        (settings.gracePeriod, settings.searchInterval, settings.batchSize) = (.zero, .zero, 3)
        settings.renewal = .init(observation: 0, confirmation: 0)
        adjust(&settings)
        return settings
    }
}

extension Blob {
    func append(_ bytes: [UInt8]) throws {
        var remaining = bytes[...]
        while !remaining.isEmpty {
            let offset = try size()
            let count = try remaining.withUnsafeBytes { try write($0, at: offset) }
            if count == 0 { awaitRoom() }
            remaining = remaining.dropFirst(count)
        }
    }

    func readAll(from offset: Int64 = 0, blockSize: Int = 1 << 16) throws -> [UInt8] {
        try readBlocks(from: offset, blockSize) { buffer, position in try read(into: buffer, at: position) }
    }
}

extension PublishedFile {
    func readAll(blockSize: Int = 1 << 16) throws -> [UInt8] {
        try readBlocks(from: 0, blockSize) { buffer, position in try self.read(into: buffer, at: position) }
    }
}

private func readBlocks(
    from offset: Int64, _ blockSize: Int, _ body: (UnsafeMutableRawBufferPointer, Int64) throws -> Int
) throws -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: blockSize, alignment: 1)
    defer { buffer.deallocate() }
    var bytes: [UInt8] = []
    while true {
        let count = try body(buffer, offset + Int64(bytes.count))
        if count == 0 { return bytes }
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
}

/// Bytes that differ at most positions if they are displaced.
func content(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    var block: [UInt8] = []
    while block.count < min(count, 100_003) { withUnsafeBytes(of: generator.next()) { block += $0 } }
    block.removeLast(max(0, block.count - 100_003))
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count < count { bytes += block.prefix(count - bytes.count) }
    return bytes
}
