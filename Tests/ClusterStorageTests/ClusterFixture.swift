import HTTPSemantics
import ObjectStorage
import PostgreSQL
import ResumableUpload
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import ClusterStorage

/// A private database, and nodes that share it.
final class ClusterFixture: Sendable {
    let cluster: PostgreSQLCluster
    private let shared: SharedDatabase?
    let uri: DatabaseURI
    /// The connections for statements of the test.
    let database: Database
    private let nodes = Monitor<[ClusterCatalog]>([])
    private let stores = Monitor<[UploadStore]>([])
    /// The object storage of all stores.
    let objects = MemoryObjectStore()

    /// - Parameter ownsServer: whether the test stops the server.
    init(ownsServer: Bool = false) throws {
        if ownsServer {
            shared = nil
            cluster = try PostgreSQLCluster()
            uri = try DatabaseURI(parsing: cluster.uri())
        } else {
            let shared = try SharedDatabase()
            self.shared = shared
            cluster = shared.server
            uri = try DatabaseURI(parsing: shared.uri)
        }
        database = Database(uri, connections: 4)
    }

    deinit {
        for store in stores.withLock({ $0 }) { store.close() }
        for node in nodes.withLock({ $0 }) { node.close(saving: nil) }
        database.close()
    }

    /// Another pool of connections.
    func connect(timeout: Duration = .seconds(10)) -> Database {
        Database(uri, connections: 4, timeout: timeout)
    }

    /// Opens a node. It is closed at the end of the test.
    /// - Parameter proxy: the proxy for changes and reads, in a fixture that owns its server.
    func node(
        _ name: String = "node", timeout: Duration = .seconds(10),
        through proxy: FaultProxy? = nil,
        _ adjust: (inout StoreConfiguration, inout NodeSession.Times) -> Void = { _, _ in }
    ) throws -> ClusterCatalog {
        var configuration = StoreConfiguration(minFree: 0)
        var times = NodeSession.Times()
        adjust(&configuration, &times)
        let database = try proxy.map { proxy in
            Database(
                try DatabaseURI(parsing: "postgresql://postgres@127.0.0.1:\(proxy.port)/postgres"), connections: 4,
                timeout: timeout)
        }
        let node = try ClusterNode(
            database: database ?? connect(timeout: timeout), control: connect(timeout: timeout), name: name,
            times: times)
        let catalog = ClusterCatalog(node: node, ledger: PieceLedger(), configuration: configuration)
        nodes.withLock { $0.append(catalog) }
        return catalog
    }

    /// Opens a store over a node. It is closed at the end of the test.
    func store(
        over catalog: ClusterCatalog, limits: PieceLimits = PieceLimits(),
        _ adjust: (inout StoreConfiguration) -> Void = { _ in }
    ) throws -> UploadStore {
        let area = try ObjectBlobArea(
            node: catalog.node, objects: objects, ledger: catalog.ledger, limits: limits, writers: 8)
        var configuration = StoreConfiguration(minFree: 0, processingWait: .zero)
        adjust(&configuration)
        let store = try UploadStore(catalog: catalog, area: area, configuration: configuration)
        stores.withLock { $0.append(store) }
        return store
    }

    /// A proxy before the server, which the test owns.
    func proxy() throws -> FaultProxy { try FaultProxy(to: cluster.port) }

    /// Runs a statement of the test.
    @discardableResult
    func run(_ sql: String, _ parameters: [DatabaseValue] = []) throws -> DatabaseRows {
        try database.run(DatabaseStatement(sql, parameters))
    }

    /// Opens a session of a process of its own, which is not renewed.
    func openSession(milliseconds: Int64 = 3_600_000) throws -> Int64 {
        let rows = try run(
            ClusterSQL.openSession,
            [
                .text(UploadID().text), .integer(1), .text("a"), .integer(milliseconds), .boolean(true),
                .boolean(false), .byteArrays([]), .integers([]),
            ])
        return try #require(rows.integer(0, 0))
    }

    /// Makes a session steady for the entire test while it is renewed, or not steady for the entire test.
    func setSteady(_ number: Int64, _ isSteady: Bool = true) throws {
        try run(
            "UPDATE onward.node SET steady_since = clock_timestamp() + $2 * interval '1 hour' WHERE session = $1",
            [.integer(number), .integer(isSteady ? -1 : 1)])
    }

    /// Lets a session end, as if it had not been renewed.
    func endSession(_ number: Int64) throws {
        try run("UPDATE onward.node SET alive_until = clock_timestamp() WHERE session = $1", [.integer(number)])
    }
}

extension CatalogRow {
    static func testing(
        principal: String = "alice", offset: Int64 = 0, length: Int64? = nil, expiresAt: Int64? = 6
    ) -> CatalogRow {
        let id = UploadID()
        return CatalogRow(
            id: id, blob: id.text,
            upload: NewUpload(
                principal: principal, method: .put, target: "/files/x", fields: ["Content-Type": "text/plain"],
                length: length),
            createdAt: 5, expiresAt: expiresAt, epoch: 1, offset: offset, length: length, phase: .receiving,
            digestStates: [[1, 2]])
    }
}

extension UploadCatalog {
    /// Records 1001 bytes for each of these uploads, so that a change can increase the offset: the catalog of a cluster
    /// compares the offset with the bytes. Other catalogs need no bytes.
    func storeBytes(of rows: [CatalogRow]) throws {
        guard let cluster = self as? ClusterCatalog else { return }
        _ = try cluster.node.database.run(
            DatabaseStatement(
                "INSERT INTO onward.piece SELECT blob, 0, 1001, NULL, convert_to(repeat('x', 1001), 'UTF8')"
                    + " FROM unnest($1::text[]) AS b (blob)", [.texts(rows.map(\.blob))]))
    }

    func storeBytes(of row: CatalogRow) throws { try storeBytes(of: [row]) }
}

extension ClusterCatalog {
    /// Acquires an upload without waiting for another node.
    func acquireNow(_ id: UploadID) throws(StoreError) -> HeldRow? { try acquire(id, until: 0) }
}

/// The deadline after this number of seconds, for an acquisition that may wait.
func seconds(_ count: Int) -> Int64 { SystemClock.deadline(in: .seconds(count)) }
