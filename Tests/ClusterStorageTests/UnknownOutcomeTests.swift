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
@Suite(.serialized, .enabled(if: PostgreSQLCluster.isRequired, "takes long: make test-scale runs it"))
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
        store = try fixture.store(over: catalog) { $0.shouldRecordEvents = true }
    }

    /// - Parameter network: the state of the network between the store and the database, from the transaction of the
    ///   publication on.
    private func publication(_ network: FaultProxy.Network = .open) throws -> Publication {
        var publication = Publication(name: try #require(name), fields: ["Content-Type": "text/plain"]) { created, _ in
            Response(status: created ? 201 : 200)
        }
        publication.validated = { [proxy] response, _ in
            proxy.set(network)
            return response
        }
        return publication
    }

    private func isPublished() throws -> Bool {
        try fixture.run("SELECT count(*) FROM onward.name WHERE NOT is_directory").integer(0, 0) == 1
    }

    /// Waits until the file is, or is not, published.
    private func awaitPublished(_ expected: Bool) -> Bool {
        pollUntil(within: .seconds(20)) { (try? isPublished()) == expected ? true : nil } == true
    }

    @Test(
        "a publication whose response was lost is found later, complete with its fields, its event and its final response",
        arguments: PublicationTransactionTests.Kind.allCases)
    func lostPublication(kind: PublicationTransactionTests.Kind) throws {
        let lease = try kind.create(in: store)
        let id = lease.id
        #expect(throws: StoreError.self) { try lease.publish(publication(.stalled([.toClient]))) }
        lease.release()
        proxy.set(.open)
        #expect(awaitPublished(true))
        let record = pollUntil(within: .seconds(20)) { try? catalog.file("f") }
        #expect(record?.fields["Content-Type"] == "text/plain")
        if let id {
            // The end of the lease did not remove the row.
            guard case .complete(let response) = try store.record(id).phase else {
                Issue.record("the upload is not complete")
                return
            }
            #expect(response.status == 201)
        }
        #expect(try store.publishedFile(#require(name)).readAll() == content(100_000))
        let events = try fixture.run("SELECT content FROM onward.event")
        let kinds = try (0..<events.count).map { try UploadEvent(savedBytes: events.bytes($0, 0) ?? []).kind }
        #expect(kinds.filter { $0 != .created } == [.completed])
        // The repeated request of a plain upload replaces the file.
        let again = try kind.create(in: store)
        #expect(try again.publish(publication()).status == 200)
        again.release()
    }

    /// Starts a thread that waits until a statement returns true, and then cuts the network until the store has tried
    /// several times to connect to the database.
    private func cutNetwork(after statement: String) throws -> WorkerThread {
        try WorkerThread(name: "network") { [fixture, proxy] in
            _ = pollUntil(within: .seconds(20)) {
                (try? fixture.run(statement).boolean(0, 0)) == true ? true : nil
            }
            let connections = proxy.connections
            proxy.set(.cut)
            _ = pollUntil(within: .seconds(20)) { proxy.connections >= connections + 3 ? true : nil }
            proxy.set(.open)
        }
    }

    @Test(
        "if the response of the database is lost, the client gets its response when the database can be reached again")
    func confirmation() throws {
        for kind in PublicationTransactionTests.Kind.allCases {
            let lease = try kind.create(in: store)
            let network = try cutNetwork(after: "SELECT count(*) = 1 FROM onward.name WHERE NOT is_directory")
            #expect(try lease.publish(publication(.stalled([.toClient]))).status == 201)
            network.join()
            lease.release()
            let again = try kind.create(in: store)
            var condition = try publication()
            condition.condition = { $0 == nil ? nil : Response(status: 412) }
            #expect(try again.publish(condition).status == 412)
            again.release()
            let removal = try cutNetwork(after: "SELECT count(*) = 0 FROM onward.name WHERE NOT is_directory")
            try store.remove(#require(name)) { [proxy] _ in
                proxy.set(.stalled([.toClient]))
                return true
            }
            removal.join()
        }
        let lease = try PublicationTransactionTests.Kind.recorded.create(in: store)
        let cancellation = try cutNetwork(after: "SELECT count(*) = 0 FROM onward.upload WHERE phase < 2")
        lease.onRevocation { [proxy] in proxy.set(.stalled([.toClient])) }
        try store.cancel(#require(lease.id), principal: "alice")
        cancellation.join()
        lease.release()
        #expect(catalog.node.session.withLock { $0.heldCount } == 0)
    }

    @Test(
        "the sweep removes an upload whose row was created although its client got an error",
        arguments: [true, false])
    func lostCreation(shouldRecordAtOnce: Bool) throws {
        let new = NewUpload(principal: "alice", method: .put, target: "/files/f", length: 1000)
        if shouldRecordAtOnce {
            proxy.set(.stalled([.toClient]))
            #expect(throws: StoreError.self) { try store.create(new) }
        } else {
            let lease = try store.create(new, shouldRecordAtOnce: false)
            try [UInt8](repeating: 1, count: 10).withUnsafeBytes { try lease.append($0) }
            proxy.set(.stalled([.toClient]))
            #expect(throws: StoreError.self) { try lease.acknowledge() }
            lease.release()
        }
        #expect(try fixture.run("SELECT count(*) FROM onward.upload").integer(0, 0) == 1)
        proxy.set(.open)
        let isRemoved: Bool? = pollUntil(within: .seconds(20)) {
            _ = store.sweepPart()
            return (try? catalog.sharedUsage(of: "alice")) == [:] ? true : nil
        }
        #expect(isRemoved == true)
        let events = try fixture.run("SELECT content FROM onward.event ORDER BY number")
        let kinds = try (0..<events.count).map { try UploadEvent(savedBytes: events.bytes($0, 0) ?? []).kind }
        #expect(kinds == [.created, .canceled])
    }

    @Test(
        "a publication that has not reached the database has no effect later",
        arguments: PublicationTransactionTests.Kind.allCases)
    func latePublication(kind: PublicationTransactionTests.Kind) throws {
        let lease = try kind.create(in: store)
        let id = lease.id
        #expect(throws: StoreError.self) { try lease.publish(publication(.stalled([.toServer]))) }
        lease.release()
        proxy.set(.open)
        // From now on the outcome is known.
        let record = pollUntil(within: .seconds(20)) { () -> FileRecord?? in
            do { return .some(try catalog.file("f")) } catch { return nil }
        }
        let isMade = try #require(record) != nil
        #expect(try isPublished() == isMade)
        if let id, kind == .recorded {
            let phase = try store.record(id).phase
            #expect((phase == .receiving) == !isMade)
        }
        let again = try kind.create(in: store)
        #expect(try again.publish(publication()).status == (isMade ? 200 : 201))
        again.release()
    }

    @Test("a removal whose response was lost does not remove the file that another request has published meanwhile")
    func lostRemoval() throws {
        let lease = try PublicationTransactionTests.Kind.recorded.create(in: store)
        #expect(try lease.publish(publication()).status == 201)
        lease.release()
        let other = try fixture.store(over: fixture.node("b"))
        let network = try WorkerThread(name: "network") { [self] in
            _ = pollUntil(within: .seconds(20)) { (try? isPublished()) == false ? true : nil }
            proxy.set(.cut)
            if let next = try? PublicationTransactionTests.Kind.recorded.create(in: other) {
                _ = try? next.publish(publication())
                next.release()
            }
            proxy.set(.open)
        }
        let failure = #expect(throws: StoreError.self) {
            try store.remove(#require(name)) { [proxy] _ in
                proxy.set(.stalled([.toClient]))
                return true
            }
        }
        #expect(failure?.code == "storage-unavailable")
        network.join()
        #expect(try isPublished())
    }
}
