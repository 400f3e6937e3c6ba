import HTTPSemantics
import ObjectStorage
import PostgreSQL
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

/// Tests what a store answers, and what happens later, if the response to a transaction is lost.
@Suite(.serialized, .enabled(if: PostgreSQLCluster.isAvailable, "\(PostgreSQLCluster.requirement)"))
struct UnknownOutcomeTests {
    private let fixture: ClusterFixture
    private let proxy: FaultProxy
    private let catalog: ClusterCatalog
    private let store: UploadStore
    private let name = PublishedName(path: "f")

    init() throws {
        fixture = try ClusterFixture(ownsServer: true)
        proxy = try fixture.proxy()
        catalog = try fixture.node(timeout: .seconds(1), through: proxy)
        store = try fixture.store(over: catalog)
    }

    private func publication() throws -> Publication {
        Publication(name: try #require(name), fields: ["Content-Type": "text/plain"]) { created, _ in
            Response(status: created ? 201 : 200)
        }
    }

    /// The network to the database fails when bytes are stored, which is the last step before the publication.
    private func failNetworkBeforePublication(_ network: FaultProxy.Network) {
        fixture.objects.setFault { [proxy] operation in
            if case .put(let key, _) = operation, key.hasPrefix("data/") { proxy.set(network) }
            return nil
        }
    }

    private func openNetwork() {
        fixture.objects.setFault { _ in nil }
        proxy.set(.open)
    }

    private func isPublished() throws -> Bool {
        try fixture.run("SELECT count(*) FROM onward.name WHERE NOT is_directory").integer(0, 0) == 1
    }

    /// Waits until the file is, or is not, published.
    private func awaitPublished(_ expected: Bool) -> Bool {
        pollUntil(within: .seconds(20)) { (try? isPublished()) == expected ? true : nil } == true
    }

    private func create(isTransient: Bool) throws -> UploadLease {
        let new = NewUpload(principal: "alice", method: .put, target: "/files/f", length: 100_000)
        let lease = try isTransient ? store.createTransient(new) : store.create(new, recordsAtOnce: false)
        try content(100_000).withUnsafeBytes { try lease.append($0) }
        return lease
    }

    @Test(
        "a new file whose publication failed with 503 does not stay published, also if the transaction was committed",
        arguments: [true, false])
    func lostPublication(isTransient: Bool) throws {
        let lease = try create(isTransient: isTransient)
        failNetworkBeforePublication(.stalled([.toClient]))
        #expect(throws: StoreError.self) { try lease.publish(publication()) }
        lease.release()
        openNetwork()
        #expect(awaitPublished(false))
        // The name is free for the repeated request.
        let again = try create(isTransient: isTransient)
        #expect(try again.publish(publication()).status == 201)
        again.release()
        #expect(try store.publishedFile(#require(name)).readAll() == content(100_000))
    }
}
