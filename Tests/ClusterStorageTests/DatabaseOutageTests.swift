import PostgreSQL
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import ClusterStorage

/// Tests holds while the database does not respond, and afterwards.
@Suite(.enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct DatabaseOutageTests {
    @Test("when a server opens another session, its earlier one has ended, even if it was renewed after the outage")
    func earlierSession() throws {
        let fixture = try ClusterFixture(ownsServer: true)
        let second = try fixture.node("b")
        let proxy = try fixture.proxy()
        // For the database the session lasts longer than the test, but its server relies on it for five seconds.
        var times = NodeSession.Times()
        (times.lifetime, times.renewal, times.margin) = (29_000_000_000, 200_000_000, 24_000_000_000)
        let control = Database(
            try DatabaseURI(parsing: "postgresql://postgres@127.0.0.1:\(proxy.port)/postgres"), connections: 2,
            timeout: .seconds(4))
        let node = try ClusterNode(database: fixture.connect(), control: control, name: "a", times: times)
        let first = ClusterCatalog(node: node, ledger: PieceLedger(), configuration: StoreConfiguration(minFree: 0))
        defer { first.close(saving: nil) }
        let isLost = Monitor(false)
        first.onHolds { _ in
        } lost: { _ in
            isLost.withLock { $0 = true }
            isLost.notifyAll()
        }
        let row = CatalogRow.testing()
        let session: Int64? = pollUntil(within: .seconds(60)) {
            (try? first.commit(.insert(row))) == nil ? nil : try? node.currentSession()
        }
        let earlier = try #require(session)
        proxy.set(.cut)
        #expect(isLost.wait(until: seconds(60)) { $0 ? true : nil } == true)
        // A renewal that was sent before the outage arrives now.
        try fixture.run(ClusterSQL.renewSession, [.integer(earlier), .integer(29_000)])
        #expect(throws: StoreError.heldElsewhere) { try second.acquireNow(row.id) }
        proxy.set(.open)
        let isOpen: Bool? = pollUntil(within: .seconds(60)) { (try? node.currentSession()) == nil ? nil : true }
        #expect(isOpen == true)
        #expect(try second.acquireNow(row.id)?.fence == 2)
    }

    @Test("a session whose server has got no response to its opening ends when the server opens the next one")
    func lostOpening() throws {
        let fixture = try ClusterFixture(ownsServer: true)
        // For the database the sessions last longer than the test, and nothing renews the first one.
        let node = try fixture.node("a", timeout: .seconds(1)) {
            ($1.lifetime, $1.renewal) = (29_000_000_000, 3_600_000_000_000)
        }.node
        let opened: Int64? = pollUntil(within: .seconds(60)) { try? node.currentSession() }
        let first = try #require(opened)
        try fixture.setStandby("missing")
        _ = try fixture.database.transaction([
            DatabaseStatement(ClusterSQL.commitAtOnce),
            DatabaseStatement("UPDATE onward.node SET alive_until = '-infinity' WHERE session = $1", [.integer(first)]),
        ])
        // The next session is inserted, and its commit waits for longer than the server. Another attempt waits for it.
        #expect(try fixture.awaitWaiting("advisory") { node.sessionWasRejected(first) })
        try fixture.setStandby("")
        let number: Int64? = pollUntil(within: .seconds(60)) {
            node.sessionWasRejected(first)
            return (try? node.currentSession()).flatMap { $0 == first ? nil : $0 }
        }
        let living = try fixture.run("SELECT session FROM onward.node WHERE onward.is_alive(alive_until)")
        #expect((0..<living.count).map { living.integer($0, 0) } == [number])
    }

    @Test(
        "a connection on which notifications stop to arrive, although it seems to be open, is replaced",
        .enabled(if: PostgreSQLCluster.isRequired, "takes long: make test-scale runs it"))
    func silentListener() throws {
        let fixture = try ClusterFixture(ownsServer: true)
        try fixture.database.updateClusterSchema()
        let connections = Counter()
        // The first connection is that of the session, the second that of the notifications. Its beginning needs less
        // than a thousand bytes.
        let proxy = try FaultProxy(to: fixture.cluster.port) {
            connections.next() == 2 ? FaultProxy.Fault(kind: .stall, direction: .toClient, after: 700) : nil
        }
        let control = Database(
            try DatabaseURI(parsing: "postgresql://postgres@127.0.0.1:\(proxy.port)/postgres"), connections: 1,
            timeout: .seconds(4))
        let notes = Monitor<[ClusterObservation.Note]>([])
        let node = try ClusterNode(database: fixture.connect(), control: control, name: "a") { note in
            notes.withLock { $0.append(note) }
        }
        defer { node.close() }
        func awaitProblem(_ isProblem: Bool, within limit: Duration) -> Bool {
            pollUntil(within: limit) { notes.withLock { $0.last?.isProblem } == isProblem ? true : nil } ?? false
        }
        #expect(awaitProblem(true, within: .seconds(120)))
        // The proxy resets the silent connection a minute after it has passed on the last byte.
        #expect(awaitProblem(false, within: .seconds(40)))
        #expect(node.isReceivingNotifications && proxy.cuts == 1)
        #expect(node.counts.withLock { $0.session.lost } == 0)
    }

    @Test("while commits wait for a standby server, a server still gets the request for an upload, and releases it")
    func waitingCommits() throws {
        // On a machine that stalls, the session can end first.
        #expect(try (0..<3).contains { _ in try releases() })
    }

    @Test(
        "a change that a standby server has not confirmed stays invisible, although the session that made it has ended")
    func unconfirmedChange() throws {
        let fixture = try ClusterFixture(ownsServer: true)
        let catalog = try fixture.node("a", timeout: .seconds(1)) { $1.renewal = 3_600_000_000_000 }
        let opened: Int64? = pollUntil(within: .seconds(60)) { try? catalog.node.currentSession() }
        let session = try #require(opened)
        try fixture.setStandby("missing")
        #expect(throws: StoreError.self) { try catalog.commit(.insert(.testing())) }
        #expect(try fixture.awaitWaiting("SyncRep"))
        _ = try fixture.database.transaction([
            DatabaseStatement(ClusterSQL.commitAtOnce),
            DatabaseStatement(
                "UPDATE onward.node SET alive_until = '-infinity' WHERE session = $1", [.integer(session)]),
        ])
        #expect(try fixture.run(ClusterSQL.endLateTransactions).count == 0)
        #expect(try fixture.run("SELECT count(*) FROM onward.upload").integer(0, 0) == 0)
        try fixture.setStandby("")
        let isVisible: Bool? = try pollUntil(within: .seconds(60)) {
            try fixture.run("SELECT count(*) FROM onward.upload").integer(0, 0) == 1 ? true : nil
        }
        #expect(isVisible == true)
    }

    /// - Returns: false if the session of the holder has ended before it got the request.
    private func releases() throws -> Bool {
        let fixture = try ClusterFixture(ownsServer: true)
        let first = try fixture.node("a") { $1.renewal = 100_000_000 }
        let second = try fixture.node("b")
        let row = CatalogRow.testing()
        try first.commit(.insert(row))
        let isLost = Monitor(false)
        first.onHolds {
            first.release($0, fence: 1)
        } lost: { _ in
            isLost.withLock { $0 = true }
        }
        // There is no such server.
        try fixture.setStandby("missing")
        #expect(try fixture.awaitWaiting("SyncRep"))
        let thread = try WorkerThread(name: "acquire") { _ = try? second.acquire(row.id, until: seconds(60)) }
        let isReleased: Bool? = pollUntil(within: .seconds(60)) {
            if first.node.counts.withLock({ $0.holds.releasedOnRequest }) > 0 { return true }
            return isLost.withLock { $0 } ? false : nil
        }
        try fixture.setStandby("")
        thread.join()
        guard isReleased == true else { return false }
        let fence: Int64? = pollUntil(within: .seconds(60)) { (try? second.acquireNow(row.id))??.fence }
        #expect(fence ?? 0 > 1)
        return true
    }
}

extension ClusterFixture {
    /// Lets commits wait for a standby server, or not if the name is empty.
    fileprivate func setStandby(_ name: String) throws {
        _ = try cluster.query("ALTER SYSTEM SET synchronous_standby_names = '\(name)'")
        _ = try cluster.query("SELECT pg_reload_conf()")
    }

    /// Waits until a transaction waits for this, and returns whether one does.
    /// - Parameter attempt: is repeated meanwhile.
    fileprivate func awaitWaiting(_ event: String, _ attempt: () -> Void = {}) throws -> Bool {
        let isFound: Bool? = try pollUntil(within: .seconds(60)) {
            attempt()
            let rows = try run("SELECT count(*) FROM pg_stat_activity WHERE wait_event = $1", [.text(event)])
            return rows.integer(0, 0) ?? 0 > 0 ? true : nil
        }
        return isFound == true
    }
}
