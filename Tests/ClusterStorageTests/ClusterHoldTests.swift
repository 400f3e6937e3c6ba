import HTTPSemantics
import ObjectStorage
import PostgreSQL
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

/// Tests which node may change an upload.
@Suite(.enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct ClusterHoldTests {
    private func advance(_ id: UploadID, epoch: Int64, offset: Int64) -> CatalogChange {
        .advance(CatalogChange.Advance(id: id, epoch: epoch, offset: offset, length: nil, digestStates: []))
    }

    @Test("the node that has created an upload holds it; another node cannot change or remove it")
    func inserted() throws {
        let fixture = try ClusterFixture()
        let (first, second) = (try fixture.node("a"), try fixture.node("b"))
        let row = CatalogRow.testing()
        try first.storeBytes(of: row)
        try first.commit(.insert(row))
        #expect(first.holds(row.id, fence: 1) && !second.holds(row.id, fence: 1))
        #expect(try second.row(row.id) == row)
        #expect(throws: StoreError.superseded) { try second.commit(advance(row.id, epoch: 5, offset: 1)) }
        #expect(throws: StoreError.heldElsewhere) {
            try second.commit(.delete([CatalogChange.Removal(id: row.id, epoch: 5)]))
        }
        #expect(throws: StoreError.heldElsewhere) { try second.acquireNow(row.id) }
        #expect(try second.expired(at: 100, limit: 9) == [] && first.expired(at: 100, limit: 9) == [row.id])
        try first.commit(.markProcessing(row.id, epoch: 1))
        #expect(try second.processing(after: nil, limit: 9) == [] && second.processingCount() == 1)
        try first.commit(advance(row.id, epoch: 1, offset: 1))
        // After the end of its session, any other node can remove it.
        first.close(saving: nil)
        #expect(try second.expired(at: 100, limit: 9) == [row.id])
        #expect(try second.commit(.delete([CatalogChange.Removal(id: row.id, epoch: 5)])).unfinished == 1)
        #expect(throws: StoreError.superseded) { try first.commit(.probe) }
    }

    @Test("a node acquires an upload after it has requested it; both then know who holds it")
    func request() throws {
        let fixture = try ClusterFixture()
        let (first, second) = (try fixture.node("a"), try fixture.node("b"))
        let row = CatalogRow.testing()
        try first.storeBytes(of: row)
        try first.commit(.insert(row))
        let requests = Counter()
        first.onHolds { id in
            // As the store does, the bytes are acknowledged before the upload is released.
            if requests.next() > 1 { return }
            _ = try? first.commit(advance(id, epoch: 2, offset: 7))
            first.release(id, fence: 1)
        } lost: { _ in
            Issue.record("no hold is lost")
        }
        let held = try #require(try second.acquire(row.id, until: seconds(10)))
        #expect(requests.value == 1)
        #expect(held.fence == 2 && held.row.offset == 7 && held.row.epoch == 1 << 32)
        #expect(!first.holds(row.id, fence: 1) && second.holds(row.id, fence: 2))
        // Requests of the earlier hold have lower epochs, however many they were.
        #expect(throws: StoreError.superseded) { try first.commit(advance(row.id, epoch: 1 << 31, offset: 9)) }
        #expect(throws: StoreError.superseded) { try second.commit(advance(row.id, epoch: 1 << 31, offset: 9)) }
        #expect(throws: StoreError.superseded) { try second.commit(advance(row.id, epoch: 2 << 32, offset: 9)) }
        try second.commit(advance(row.id, epoch: 1 << 32 + 1, offset: 9))
        #expect(try first.row(row.id)?.offset == 9)
    }

    @Test("an upload is released at the end of its use, and the late end of an earlier use does not end a later one")
    func release() throws {
        let fixture = try ClusterFixture()
        let (first, second) = (try fixture.node("a"), try fixture.node("b"))
        first.onHolds { _ in
        } lost: { _ in
        }
        let row = CatalogRow.testing()
        try first.storeBytes(of: row)
        try first.commit(.insert(row))
        // A use follows before the end of an earlier one is known.
        #expect(try first.acquireNow(row.id)?.fence == 2)
        first.release(row.id, fence: 1)
        #expect(first.holds(row.id, fence: 2) && !first.holds(row.id, fence: 1))
        #expect(throws: StoreError.heldElsewhere) { try second.acquireNow(row.id) }
        // Nor does the release of an earlier use that arrives in the database now.
        try fixture.run(
            ClusterSQL.release,
            [.integer(try first.node.currentSession()), .byteArrays([row.id.bytes]), .integers([1])])
        #expect(throws: StoreError.heldElsewhere) { try second.acquireNow(row.id) }
        first.release(row.id, fence: 2)
        func isReleased() -> Bool {
            pollUntil(within: .seconds(20)) {
                (try? fixture.run("SELECT holder IS NULL FROM onward.upload").boolean(0, 0)) == true ? true : nil
            } == true
        }
        #expect(isReleased())
        #expect(try second.acquireNow(row.id)?.fence == 3)
        second.release(row.id, fence: 3)
        #expect(isReleased())
    }

    @Test("an acquisition that arrives after its outcome was resolved has no effect, like any batch of a session")
    func lateAcquisition() throws {
        let fixture = try ClusterFixture()
        let node = try fixture.node("a")
        let row = CatalogRow.testing()
        try node.storeBytes(of: row)
        try node.commit(.insert(row))
        let session = try node.node.currentSession()
        // The next batch with the number that the node knows is rejected, and the node resolves the outcomes once more.
        try fixture.run(ClusterSQL.resolveBatches, [.integer(session)])
        let held = try #require(try node.acquireNow(row.id))
        let batch = try fixture.run("SELECT batch FROM onward.node WHERE session = $1", [.integer(session)])
        #expect(held.fence == 2 && batch.integer(0, 0) == 2)
        try node.commit(advance(row.id, epoch: held.row.epoch, offset: 1))
    }

    @Test("a hold that the node does not know is released on a request")
    func unknownHold() throws {
        let fixture = try ClusterFixture()
        let (first, second) = (try fixture.node("a"), try fixture.node("b"))
        let row = CatalogRow.testing()
        try first.storeBytes(of: row)
        try first.commit(.insert(row))
        // As if the response to an acquisition had been lost.
        first.node.session.withLock { $0.removeHold(row.id) }
        #expect(try second.acquire(row.id, until: seconds(5))?.fence == 2)
    }

    @Test("after the end of a session another node acquires its uploads, and its late changes are rejected")
    func endedSession() throws {
        let fixture = try ClusterFixture()
        let first = try fixture.node("a") { $1.renewal = 3_600_000_000_000 }
        let second = try fixture.node("b")
        let lost = Monitor<[UploadID]>([])
        first.onHolds { _ in
        } lost: { ids in
            lost.withLock { $0 += ids }
            lost.notifyAll()
        }
        let row = CatalogRow.testing()
        try first.storeBytes(of: row)
        try first.commit(.insert(row))
        try first.commit(advance(row.id, epoch: 1, offset: 3))
        let session = try first.node.currentSession()
        #expect(throws: StoreError.heldElsewhere) { try second.acquireNow(row.id) }
        // The process of the first node is stopped for longer than its session lasts.
        try fixture.endSession(session)
        #expect(try second.acquireNow(row.id)?.row.offset == 3)
        #expect(throws: StoreError.self) { try first.commit(advance(row.id, epoch: 9, offset: 4)) }
        try second.commit(advance(row.id, epoch: 1 << 32, offset: 5))
        #expect(throws: StoreError.self) { try first.commit(advance(row.id, epoch: 1 << 33, offset: 6)) }
        // Once its row is removed, all its changes fail, and it opens another session.
        try fixture.run("DELETE FROM onward.node WHERE session = $1", [.integer(session)])
        // A collector may have removed the row earlier, so that this change belongs to the next session already.
        _ = first.commit([.probe])
        #expect(lost.wait(until: seconds(10)) { $0.isEmpty ? nil : $0 } == [row.id])
        let next = CatalogRow.testing()
        #expect(
            pollUntil(within: .seconds(10)) {
                if case .success = first.commit([.insert(next)])[0] { true } else { nil }
            } == true)
        #expect(try first.node.currentSession() > session && first.holds(next.id, fence: 1))
        #expect(!first.holds(row.id, fence: 1))
        #expect(try second.row(row.id)?.offset == 5)
        #expect(throws: StoreError.superseded) { try first.commit(advance(row.id, epoch: 1 << 34, offset: 7)) }
    }

    @Test("the uploads of a node that has died can be acquired when its session has ended, and its row is removed")
    func death() throws {
        let fixture = try ClusterFixture()
        let second = try fixture.node("b")
        let row = CatalogRow.testing()
        try second.commit(.insert(row))
        // A session that is not renewed.
        let session = try fixture.openSession(milliseconds: 1500)
        try fixture.run("UPDATE onward.upload SET holder = $1", [.integer(session)])
        let third = try fixture.node("c")
        #expect(throws: StoreError.heldElsewhere) { try third.acquireNow(row.id) }
        #expect(try third.acquire(row.id, until: seconds(10))?.fence == 2)
        let remaining = pollUntil(within: .seconds(20)) {
            (try? fixture.run("SELECT count(*) FROM onward.node").integer(0, 0)) == 2 ? true : nil
        }
        #expect(remaining == true)
        #expect(throws: DatabaseError.self) {
            try fixture.run(ClusterSQL.beginBatch, [.integer(session), .integer(0)])
        }
    }

    @Test("a later session has a higher number, and no session of another database has the same one")
    func numbers() throws {
        let (fixture, other) = (try ClusterFixture(), try ClusterFixture())
        let catalog = try fixture.node("a")
        let first = try catalog.node.currentSession()
        try other.database.updateClusterSchema()
        let sessions = try [other.openSession(), other.openSession()]
        #expect(Set(sessions + [first]).count == 3 && first < sessions[0])
        // The key of an object contains the number of its session, which has at most 18 digits: see onward.session_of.
        #expect(sessions.allSatisfy { $0 < 1_000_000_000_000_000_000 })
        let object = try fixture.run("SELECT onward.session_of('data/x/\(first)-1')")
        #expect(object.integer(0, 0) == first)
        // A node whose sessions are in another database than its changes changes nothing.
        #expect(throws: DatabaseError.self) {
            try other.run(ClusterSQL.beginBatch, [.integer(first), .integer(0)])
        }
    }

    /// A server whose session is only renewed when the test requires it, and its store.
    private func server(_ name: String, _ fixture: ClusterFixture) throws -> (node: ClusterNode, store: UploadStore) {
        let catalog = try fixture.node(name) { ($1.lifetime, $1.renewal) = (29_000_000_000, 3_600_000_000_000) }
        return (catalog.node, try fixture.store(over: catalog))
    }

    /// An upload that the target resource processes.
    private func beginProcessing(in store: UploadStore) throws -> UploadLease {
        let lease = try store.create(NewUpload(principal: "alice", method: .post, target: "/app/f"))
        try Array("abc".utf8).withUnsafeBytes { try lease.append($0) }
        try lease.setLength(3)
        try lease.beginProcessing(shouldMarkDurably: true)
        return lease
    }

    /// Lets a server open its next session, and waits for it.
    private func reopen(_ node: ClusterNode) -> Bool {
        guard let last = try? node.currentSession() else { return false }
        node.sessionWasRejected(last)
        return pollUntil(within: .seconds(30)) {
            (try? node.currentSession()).flatMap { $0 == last ? nil : true }
        } ?? false
    }

    @Test("after an outage of the database the response of a target is stored by the server that has called it")
    func processingContinues() throws {
        let fixture = try ClusterFixture()
        let (first, second) = (try server("a", fixture), try server("b", fixture))
        let lease = try beginProcessing(in: first.store)
        let id = try #require(lease.id)
        let isRevoked = Monitor(false)
        lease.onRevocation { isRevoked.withLock { $0 = true } }
        // The database was unavailable for longer than a session lasts, and both servers open their next sessions.
        try fixture.endSession(first.node.currentSession())
        try fixture.endSession(second.node.currentSession())
        #expect(reopen(second.node))
        try fixture.setSteady(second.node.currentSession(), false)
        #expect(second.store.sweepPart().settled == 0)
        #expect(throws: StoreError.heldElsewhere) {
            try second.store.takeOver(id, principal: "alice", waitForProcessing: .zero)
        }
        #expect(reopen(first.node))
        try fixture.setSteady(second.node.currentSession())
        #expect(second.store.sweepPart().settled == 0)
        guard case .processing? = try? first.store.takeOver(id, principal: "alice", waitForProcessing: .zero) else {
            throw TestFailure("the upload is not processed any more")
        }
        try lease.complete(with: Response(status: 201))
        #expect(try second.store.record(id).phase == .complete(Response(status: 201)))
        #expect(!isRevoked.withLock { $0 })
        lease.release()
    }

    @Test("a steady server ends the processing of a server that has failed, whose response is then refused")
    func processingEnds() throws {
        let fixture = try ClusterFixture()
        let (first, second) = (try server("a", fixture), try server("b", fixture))
        let lease = try beginProcessing(in: first.store)
        let id = try #require(lease.id)
        let isRevoked = Monitor(false)
        lease.onRevocation {
            isRevoked.withLock { $0 = true }
            isRevoked.notifyAll()
        }
        try fixture.setSteady(second.node.currentSession())
        #expect(second.store.sweepPart().settled == 0)
        try fixture.endSession(first.node.currentSession())
        #expect(second.store.sweepPart().settled == 1)
        let settled = try second.store.record(id).phase
        // The first server was stopped, and still has its machine. Its next session adopts nothing.
        #expect(reopen(first.node))
        #expect(isRevoked.wait(until: seconds(30)) { $0 ? true : nil } == true)
        #expect(throws: StoreError.superseded) { try lease.complete(with: Response(status: 201)) }
        lease.release()
        #expect(try first.store.record(id).phase == settled && settled != .complete(Response(status: 201)))
    }

    @Test("a response that arrives while the database cannot be reached is stored as soon as it can be")
    func responseDuringOutage() throws {
        let fixture = try ClusterFixture()
        let first = try server("a", fixture)
        let lease = try beginProcessing(in: first.store)
        let id = try #require(lease.id)
        // Without a session nothing can be stored.
        try fixture.run("INSERT INTO onward.migration (version, oldest) VALUES (99, 99)")
        let session = try first.node.currentSession()
        first.node.sessionWasRejected(session)
        let hasEnded: Bool? = pollUntil(within: .seconds(30)) { (try? first.node.currentSession()) == nil ? true : nil }
        #expect(hasEnded == true)
        // A server that stops does not wait for the database.
        let refusal = #expect(throws: StoreError.self) {
            try lease.complete(with: Response(status: 201), while: { false })
        }
        #expect(refusal?.code == "storage-unavailable")
        let outcome = Monitor<Result<Void, StoreError>?>(nil)
        let thread = try WorkerThread(name: "complete") {
            let result = Result { () throws(StoreError) in try lease.complete(with: Response(status: 201)) }
            outcome.withLock { $0 = result }
        }
        let hasBegun: Bool? = pollUntil(within: .seconds(30)) {
            lease.upload.monitor.withLock { $0.machine.activity == .ending } ? true : nil
        }
        #expect(hasBegun == true)
        try fixture.run("DELETE FROM onward.migration WHERE version = 99")
        first.node.sessionWasRejected(session)
        thread.join()
        #expect(throws: Never.self) { try outcome.withLock { $0 }?.get() }
        #expect(try first.store.record(id).phase == .complete(Response(status: 201)))
        lease.release()
    }

    @Test("a session adopts only uploads that are processed, with the known fence, and waits for no lock")
    func adoption() throws {
        let fixture = try ClusterFixture()
        let node = try fixture.node("a")
        let rows = (0..<4).map { _ in CatalogRow.testing() }
        for row in rows { try node.commit(.insert(row)) }
        for row in rows.dropFirst() { try node.commit(.markProcessing(row.id, epoch: 1)) }
        let holder = try node.node.currentSession()
        let database = fixture.database
        let locking = try WorkerThread(name: "lock") {
            _ = try? database.transaction([
                DatabaseStatement("SELECT FROM onward.upload WHERE id = $1 FOR UPDATE", [.bytes(rows[3].id.bytes)]),
                DatabaseStatement("SELECT pg_sleep(60)::text"),
            ])
        }
        let isLocked: Bool? = try pollUntil(within: .seconds(8)) {
            let unlocked = try fixture.run("SELECT FROM onward.upload FOR UPDATE SKIP LOCKED")
            return unlocked.count == 3 ? true : nil
        }
        #expect(isLocked == true)
        func open(_ process: String) throws -> Int64? {
            try fixture.run(
                ClusterSQL.openSession,
                [
                    .text(process), .integer(100), .text("a"), .integer(15_000), .boolean(true), .boolean(false),
                    .byteArrays(rows.map(\.id.bytes)), .integers([1, 1, 2, 1]),
                ]
            ).integer(0, 0)
        }
        func holders() throws -> [Int64?] {
            try rows.map { row in
                try fixture.run("SELECT holder FROM onward.upload WHERE id = $1", [.bytes(row.id.bytes)]).integer(0, 0)
            }
        }
        // A living session keeps its uploads, whatever a session of another process knows.
        _ = try open("another")
        #expect(try holders() == [holder, holder, holder, holder])
        let process = try fixture.run("SELECT process FROM onward.node WHERE session = $1", [.integer(holder)])
        let opened = try open(#require(process.text(0, 0)))
        try fixture.run(
            """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE query LIKE 'SELECT pg_sleep(60)%' AND datname = current_database()
            """)
        locking.join()
        #expect(try holders() == [holder, opened, holder, holder])
    }

    @Test("a session is steady while it is renewed in time, from ten seconds after its opening on")
    func steadiness() throws {
        let fixture = try ClusterFixture()
        try fixture.database.updateClusterSchema()
        let session = try fixture.openSession(milliseconds: 29_000)
        func isSteady() throws -> Bool? {
            try fixture.run("SELECT onward.is_steady($1)", [.integer(session)]).boolean(0, 0)
        }
        func renew() throws {
            #expect(try fixture.run(ClusterSQL.renewSession, [.integer(session), .integer(29_000)]).count == 1)
        }
        #expect(try isSteady() == false)
        try fixture.setSteady(session)
        #expect(try isSteady() == true)
        try renew()
        #expect(try isSteady() == true)
        // A call that was sent before an outage can arrive before the next renewal.
        try fixture.run("UPDATE onward.node SET alive_until = clock_timestamp() + interval '7 seconds'")
        #expect(try isSteady() == false)
        try renew()
        #expect(try isSteady() == false)
        try fixture.setSteady(session)
        #expect(try isSteady() == true)
        // The clock was set back.
        try fixture.run(
            """
            UPDATE onward.node SET alive_until = alive_until + interval '1 hour', renewed_at = renewed_at + interval '1 hour',
                steady_since = clock_timestamp() + interval '1 hour'
            """)
        #expect(try isSteady() == false)
        try renew()
        let isReset = try fixture.run("SELECT steady_since <= clock_timestamp() FROM onward.node").boolean(0, 0)
        #expect(try isSteady() == false && isReset == true)
        try fixture.setSteady(session)
        #expect(try isSteady() == true)
        try fixture.endSession(session)
        #expect(try isSteady() == false)
    }

    @Test("bytes that an ended session has stored cannot be recorded, and the current session continues")
    func bytesOfEndedSession() throws {
        let fixture = try ClusterFixture()
        let catalog = try fixture.node("a")
        let session = try catalog.node.currentSession()
        let area = try ObjectBlobArea(
            node: ClusterNode(database: fixture.database, session: session + 1000), objects: MemoryObjectStore(),
            ledger: catalog.ledger)
        let row = CatalogRow.testing()
        let blob = try area.create(row.blob)
        let bytes = [UInt8](repeating: 1, count: 100_000)
        var written = 0
        while written < bytes.count {
            written += try bytes[written...].withUnsafeBytes { (bytes) throws(Errno) in
                try blob.write(bytes, at: Int64(written))
            }
        }
        try blob.synchronize(including: nil)
        let other = CatalogRow.testing()
        let outcomes = catalog.commit([.insert(row), .insert(other)])
        #expect(outcomes == [.failure(.superseded), .success(RemovedRows())])
        #expect(try catalog.row(row.id) == nil && catalog.holds(other.id, fence: 1))
        #expect(try catalog.node.currentSession() == session)
        area.close()
    }

    @Test("a node that is alive renews its session; a session that has ended is never renewed")
    func renewal() throws {
        let fixture = try ClusterFixture()
        let node = try fixture.node("a") { $1.renewal = 50_000_000 }
        let row = CatalogRow.testing()
        try node.storeBytes(of: row)
        try node.commit(.insert(row))
        let session = try node.node.currentSession()
        func end() throws -> Int64? {
            try fixture.run(
                "SELECT (extract(epoch FROM alive_until) * 1000)::bigint FROM onward.node WHERE session = $1",
                [.integer(session)]
            ).integer(0, 0)
        }
        let first = try #require(try end())
        #expect(try pollUntil(within: .seconds(10)) { try end().map { $0 > first } == true ? true : nil } == true)
        #expect(node.holds(row.id, fence: 1))
        // Another node has decided that the session has ended.
        try fixture.run("UPDATE onward.node SET alive_until = '-infinity'")
        #expect(
            pollUntil(within: .seconds(10)) {
                (try? node.node.currentSession()).map { $0 > session } == true ? true : nil
            } == true)
        #expect(!node.holds(row.id, fence: 1))
        #expect(try node.acquireNow(row.id)?.fence == 2)
    }

    @Test("nodes acquire an upload from one another again and again without an error, and one at a time is the holder")
    func races() throws {
        let fixture = try ClusterFixture()
        let nodes = try (0..<3).map { try fixture.node("\($0)") }
        let row = CatalogRow.testing()
        try nodes[0].storeBytes(of: row)
        try nodes[0].commit(.insert(row))
        nodes[0].release(row.id, fence: 1)
        let fences = Monitor<[Int64]>([])
        let failures = Monitor<[StoreError]>([])
        let threads = try nodes.map { node in
            node.onHolds { _ in
            } lost: { _ in
            }
            return try WorkerThread(name: "node") {
                for _ in 0..<10 {
                    do throws(StoreError) {
                        guard let held = try node.acquire(row.id, until: seconds(20)) else { throw .notFound }
                        let change = CatalogChange.Advance(
                            id: row.id, epoch: held.row.epoch, offset: held.row.offset + 1, length: nil,
                            digestStates: [])
                        try node.commit(.advance(change))
                        fences.withLock { $0.append(held.fence) }
                        node.release(row.id, fence: held.fence)
                    } catch {
                        failures.withLock { $0.append(error) }
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(failures.withLock { $0 } == [])
        // Each change was based on the row that the change before it has written.
        #expect(try nodes[0].row(row.id)?.offset == 30)
        let all = fences.withLock { $0 }
        #expect(all == all.sorted())
    }

    @Test("a session that ends later than any lease, because the clock of the database was set back, has ended")
    func clockSetBack() throws {
        let fixture = try ClusterFixture()
        let second = try fixture.node("b")
        let row = CatalogRow.testing()
        try second.commit(.insert(row))
        // The session of a server that has died, before the clock was set back by five minutes.
        let session = try fixture.openSession(milliseconds: 315_000)
        try fixture.run("UPDATE onward.upload SET holder = $1", [.integer(session)])
        #expect(try second.acquireNow(row.id)?.fence == 2)
        let remaining = pollUntil(within: .seconds(20)) {
            (try? fixture.run("SELECT count(*) FROM onward.node").integer(0, 0)) == 1 ? true : nil
        }
        #expect(remaining == true)
    }

    @Test("the offset of an upload in use is not reported from memory after another server has acquired the upload")
    func clockSetForward() throws {
        let fixture = try ClusterFixture()
        let node = try fixture.node("a") { $1.renewal = 3_600_000_000_000 }
        let first = try fixture.store(over: node)
        let second = try fixture.store(over: fixture.node("b"))
        let lease = try first.create(NewUpload(principal: "alice", method: .put, target: "/files/f"))
        let id = try #require(lease.id)
        lease.onRevocation {}
        try Array("abc".utf8).withUnsafeBytes { try lease.append($0) }
        #expect(try lease.acknowledge() == 3)
        // The clock of the database jumps, so the session has ended for other servers, but not yet for its own.
        try fixture.endSession(try node.node.currentSession())
        guard case .lease(let other) = try second.takeOver(id, principal: "alice", waitForProcessing: .zero) else {
            Issue.record("the upload cannot be acquired")
            return
        }
        try Array("de".utf8).withUnsafeBytes { try other.append($0) }
        #expect(try other.acknowledge() == 5)
        #expect(node.holds(id, fence: 1))
        #expect(try first.record(id).offset == 5)
        let offset: Int64? = pollUntil(within: .seconds(30)) {
            if case .lease(let lease)? = try? first.takeOver(id, principal: "alice", waitForProcessing: .zero) {
                lease.received
            } else {
                nil
            }
        }
        #expect(offset == 5)
        other.release()
        lease.release()
    }
}
