import ClusterStorage
import Foundation
import HTTPSemantics
import ObjectStorage
import PostgreSQL
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// The pairs of catalog and blob area with which the tests of the store run.
enum StoreKind: String, CaseIterable, CustomTestStringConvertible {
    case memory, files, cluster
    var testDescription: String { rawValue }

    static var allCases: [StoreKind] {
        PostgreSQLCluster.isRequired ? embedded + [.cluster] : embedded
    }

    /// The pairs that one process uses: they have a clock, a ledger of the usage, and names of bytes of their own.
    static let embedded: [StoreKind] = [.memory, .files]
}

/// A store that can be closed and reopened, with a clock that the test sets.
final class StoreFixture: Sendable {
    let kind: StoreKind
    private let directory: TemporaryDirectory
    let plan = FaultPlan()
    private let reading = Monitor(ClockReading(wall: 1_000_000_000_000_000, boot: 500_000_000_000))
    private let opened: Monitor<Opened>
    /// The database and the storage of ``StoreKind/cluster``.
    private let database: SharedDatabase?
    private let objects = MemoryObjectStore()

    private struct Opened {
        var store: UploadStore
        var catalog: MemoryCatalog
        var area: MemoryBlobArea
    }

    init(_ kind: StoreKind, _ adjust: (inout StoreConfiguration) -> Void = { _ in }) throws {
        self.kind = kind
        directory = try TemporaryDirectory()
        database = kind == .cluster ? try SharedDatabase() : nil
        let catalog = MemoryCatalog(plan: plan)
        let area = MemoryBlobArea(plan: plan)
        let placeholder = try UploadStore(
            catalog: MemoryCatalog(), area: MemoryBlobArea(), configuration: StoreConfiguration())
        opened = Monitor(Opened(store: placeholder, catalog: catalog, area: area))
        try open(adjust)
        placeholder.close()
    }

    deinit {
        opened.withLock { $0.store.close() }
    }

    var root: String { directory.path + "/data" }

    var store: UploadStore { opened.withLock { $0.store } }

    var area: MemoryBlobArea { opened.withLock { $0.area } }

    /// Advances both clocks.
    func advance(_ by: Int64) {
        reading.withLock { reading in
            reading.wall += by * 1_000_000_000
            reading.boot += by * 1_000_000_000
        }
    }

    /// Sets the wall clock, forward or back.
    func step(_ by: Int64) { reading.withLock { $0.wall += by * 1_000_000_000 } }

    /// Closes the store and opens another one with its data.
    ///
    /// - Parameters:
    ///   - losingPower: whether data that was not synchronized may be lost; `seed` selects the lost data.
    func reopen(
        losingPower: Bool = true, seed: UInt64 = 7, _ adjust: (inout StoreConfiguration) -> Void = { _ in }
    ) throws {
        try reopen(after: {}, losingPower: losingPower, seed: seed, adjust)
    }

    /// Closes the store, calls `happens`, and opens another store with the same data.
    func reopen(
        after happens: () -> Void, losingPower: Bool = true, seed: UInt64 = 7,
        _ adjust: (inout StoreConfiguration) -> Void
    ) throws {
        store.close()
        happens()
        var generator = SeededGenerator(seed: seed)
        opened.withLock { opened in
            opened.area =
                losingPower
                ? opened.area.durableImage(using: &generator, plan: plan) : opened.area.processImage(plan: plan)
            opened.catalog = opened.catalog.durableImage(plan: plan)
        }
        try open(adjust)
    }

    private func open(_ adjust: (inout StoreConfiguration) -> Void) throws {
        var configuration = StoreConfiguration(minFree: 0)
        configuration.clock = { [reading] in reading.withLock { $0 } }
        configuration.processingWait = .milliseconds(50)
        adjust(&configuration)
        switch kind {
        case .memory:
            let (catalog, area) = opened.withLock { ($0.catalog, $0.area) }
            let store = try UploadStore(catalog: catalog, area: area, configuration: configuration)
            opened.withLock { $0.store = store }
        case .files:
            let store = try UploadStore.open(root: root, configuration: configuration)
            opened.withLock { $0.store = store }
        case .cluster:
            let store = try clusterStore(configuration)
            opened.withLock { $0.store = store }
        }
    }

    private func clusterStore(_ configuration: StoreConfiguration) throws -> UploadStore {
        let uri = try DatabaseURI(parsing: try #require(database).uri)
        let database = Database(uri)
        let node = try ClusterNode(database: database, control: Database(uri, connections: 2), name: "test")
        let ledger = PieceLedger()
        let area = try ObjectBlobArea(node: node, objects: objects, ledger: ledger)
        return try UploadStore(
            catalog: ClusterCatalog(node: node, ledger: ledger, configuration: configuration), area: area,
            configuration: configuration)
    }

    /// Whether the condition is true after a start. A server of a cluster has to sweep until it is: another server may still
    /// process an upload, so it is not ended before the session of the sweeping server is steady.
    func sweep(until condition: () throws -> Bool) throws -> Bool {
        if kind != .cluster { return try condition() }
        return try pollUntil(within: .seconds(60)) {
            _ = store.sweepPart()
            return try condition() ? true : nil
        } ?? false
    }

    func usage(of principal: String) -> Usage { store.currentUsage(of: principal)?[principal] ?? Usage() }

    /// The number of blobs of unfinished uploads; in a cluster only of those that have bytes.
    func blobCount() throws -> Int { try store.area.sizes().count }
}

extension BlobArea {
    /// The sizes of all blobs of unfinished uploads, by name.
    func sizes() throws -> [String: Int64] {
        var result: [String: Int64] = [:]
        let names = try names()
        while let name = try names() { result[name] = try size(of: name) }
        return result
    }
}

extension UploadCatalog {
    /// All rows of unfinished uploads; only tests need them in one array.
    func unfinishedRows() throws -> [CatalogRow] {
        try rows(after: nil, limit: .max).filter(\.isUnfinished)
    }

    /// The sum of the sizes in the records of a principal's files.
    func publishedBytes(of principal: String) throws -> Int64 {
        try files(after: "", limit: .max).filter { $0.principal == principal }.reduce(0) { $0 + $1.size }
    }

    func close() { close(saving: nil) }
}

extension NewUpload {
    static func testing(
        principal: String = "alice", length: Int64? = nil, digests: Set<DigestAlgorithm> = [], expiresAt: Int64? = nil
    ) -> NewUpload {
        NewUpload(
            principal: principal, method: .put, target: "/files/x", fields: ["Content-Type": "text/plain"],
            length: length, digests: digests, expiresAt: expiresAt)
    }
}

extension UploadLease {
    func append(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try append($0) } }

    func append(_ text: String) throws { try append(Array(text.utf8)) }

    func readAll() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(received) + 1)
        let count = try bytes.withUnsafeMutableBytes { try read(into: $0, at: 0) }
        return Array(bytes[..<count])
    }
}

extension PublishedFile {
    func readAll() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(attributes.size) + 1)
        let count = try bytes.withUnsafeMutableBytes { try read(into: $0, at: 0) }
        return Array(bytes[..<count])
    }
}

extension UploadStore {
    /// Takes over an upload and expects a lease.
    func lease(_ id: UploadID, principal: String = "alice") throws -> UploadLease {
        let taken = try takeOver(id, principal: principal, waitForProcessing: .zero)
        guard case .lease(let lease) = taken else {
            Issue.record("a lease was expected, not \(taken)")
            throw StoreError.processing
        }
        return lease
    }
}

extension Publication {
    /// A publication whose response is 201 or 200, with the entity tag.
    static func testing(_ name: PublishedName) -> Publication {
        Publication(
            name: name, refused: Response(status: 409),
            validated: { response, attributes in
                var response = response
                response.fields.set("ETag", attributes.entityTag.serialized)
                return response
            },
            response: { created, _ in Response(status: created ? 201 : 200) })
    }
}

func name(_ path: String) throws -> PublishedName {
    try #require(PublishedName(segments: path.split(separator: "/").map(String.init)))
}

extension UploadStore {
    /// All entries of a directory in the order of their names' bytes.
    func entries(in directory: PublishedName.Directory) throws -> [PublishedEntry] {
        let listing = try listing(of: directory)
        var entries: [PublishedEntry] = []
        while let entry = try listing.next() { entries.append(entry) }
        return entries.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }

    /// The names on one page, and the cursor of the next page.
    func page(
        _ directory: PublishedName.Directory = .root, after cursor: String? = nil, limit: Int
    ) throws -> (names: [String], next: String?) {
        let page = try page(of: directory, after: cursor, limit: limit)
        var names: [String] = []
        while let entry = try page.next() { names.append(entry.name) }
        return (names, page.nextCursor)
    }
}

extension UploadStore {
    /// Creates a plain upload.
    func createTransient(
        principal: String, length: Int64?, digests: Set<DigestAlgorithm> = []
    ) throws(StoreError) -> UploadLease {
        try createTransient(
            NewUpload(principal: principal, method: .put, target: "", length: length, digests: digests))
    }
}
