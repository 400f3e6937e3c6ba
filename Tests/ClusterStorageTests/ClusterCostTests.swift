import HTTPSemantics
import PostgreSQL
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

/// Counts the transactions and the requests to the object storage that uploads need. The servers do no regular work.
@Suite(.enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct ClusterCostTests {
    private struct Cost: Equatable {
        var transactions = 0
        var objects = 0
    }

    /// Servers whose transactions are counted.
    private final class Servers {
        private let fixture: ClusterFixture
        private let transactions = Counter()
        private let databases: [Database]
        let stores: [UploadStore]

        init(_ count: Int) throws {
            let fixture = try ClusterFixture()
            try fixture.database.updateClusterSchema()
            let transactions = transactions
            databases = (0..<count).map { _ in Database(fixture.uri, connections: 2) { _ in transactions.next() } }
            stores = try databases.map { database in
                let session = try fixture.openSession()
                let catalog = ClusterCatalog(
                    node: ClusterNode(database: database, session: session), ledger: PieceLedger(),
                    configuration: StoreConfiguration())
                return try fixture.store(over: catalog)
            }
            self.fixture = fixture
        }

        /// Returns the cost of `count` uploads, which are sent to the servers in turn. Before, each server gets one
        /// upload, which is not counted.
        func cost(of count: Int, _ upload: (UploadStore, Int) throws -> Void) throws -> Cost {
            for (index, store) in stores.enumerated() { try upload(store, -1 - index) }
            let before = Cost(transactions: transactions.value, objects: fixture.objects.operations.count)
            for index in 0..<count { try upload(stores[index % stores.count], index) }
            return Cost(
                transactions: transactions.value - before.transactions,
                objects: fixture.objects.operations.count - before.objects)
        }
    }

    private func publish(_ lease: UploadLease, _ index: Int) throws {
        let name = try #require(PublishedName(path: "f\(index)"))
        let publication = Publication(name: name) { created, _ in Response(status: created ? 201 : 200) }
        #expect(try lease.publish(publication).status == 201)
        lease.release()
    }

    @Test("a small upload needs two transactions, of which one only reads, and no object, with any number of servers")
    func small() throws {
        for count in [1, 3] {
            let cost = try Servers(count).cost(of: 6) { store, index in
                let new = NewUpload(principal: "alice", method: .put, target: "/files/f", length: 4096)
                let lease = try store.create(new, shouldRecordAtOnce: false)
                try content(4096).withUnsafeBytes { try lease.append($0) }
                try publish(lease, index)
            }
            #expect(cost == Cost(transactions: 12, objects: 0))
        }
    }

    @Test("opening a file needs one transaction")
    func opening() throws {
        let cost = try Servers(1).cost(of: 1) { store, index in
            if index < 0 {
                let lease = try store.create(NewUpload(principal: "alice", method: .put, target: "/files/f"))
                try content(4096).withUnsafeBytes { try lease.append($0) }
                try publish(lease, 0)
            } else {
                let file = try store.publishedFile(#require(PublishedName(path: "f0")))
                #expect(file.attributes.size == 4096)
            }
        }
        #expect(cost == Cost(transactions: 1, objects: 0))
    }

    @Test("a large upload needs one transaction and one object for each 8 MiB, with any number of servers")
    func large() throws {
        let part = content(1 << 20)
        for count in [1, 3] {
            let cost = try Servers(count).cost(of: 3) { store, index in
                let new = NewUpload(principal: "alice", method: .put, target: "/files/f", length: 32 << 20)
                let lease = try store.create(new)
                for number in 1...32 {
                    try part.withUnsafeBytes { try lease.append($0) }
                    // The server acknowledges the bytes of a fast client as often as this.
                    if number.isMultiple(of: 8) { _ = try lease.acknowledge() }
                }
                try publish(lease, index)
            }
            // Each upload also needs three transactions: for its row, for a search for its name, and for the
            // publication.
            #expect(cost == Cost(transactions: 3 * (4 + 3), objects: 3 * 4))
        }
    }
}
