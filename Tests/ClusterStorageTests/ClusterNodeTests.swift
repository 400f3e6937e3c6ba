import HTTPSemantics
import ObjectStorage
import PostgreSQL
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

@Suite(.enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct ClusterNodeTests {
    /// A place that does not use its object storage.
    private func place(in fixture: ClusterFixture, isExclusive: Bool) throws -> StoreCopy.Place {
        try StoreCopy.Place.cluster(
            ClusterLocation(
                catalog: fixture.uri, notifications: fixture.uri,
                blobs: ObjectStorageURI(parsing: "s3://bucket?endpoint=http://127.0.0.1:1")),
            credentials: ObjectCredentials(environment: ["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "S"]),
            isExclusive: isExclusive)
    }

    @Test(
        "a copy out of a database and servers exclude each other, and a server that stopped without a word changes nothing"
    )
    func exclusion() throws {
        let fixture = try ClusterFixture()
        let server = try fixture.node("a")
        #expect(throws: StoreError.inUse) { try place(in: fixture, isExclusive: true) }
        server.close(saving: nil)
        let stopped = try fixture.openSession()
        try fixture.endSession(stopped)
        let copy = try place(in: fixture, isExclusive: true)
        #expect(throws: StoreError.inUse) { try fixture.node("b") }
        #expect(throws: StoreError.inUse) { try place(in: fixture, isExclusive: false) }
        #expect(throws: DatabaseError.self) {
            try fixture.run(ClusterSQL.beginBatch, [.integer(stopped), .integer(0)])
        }
        #expect(throws: Never.self) { try copy.requireUnchanged() }
        // If its session ends, servers can start, and the copy fails.
        try fixture.run("UPDATE onward.node SET alive_until = '-infinity'")
        _ = try fixture.node("b")
        let hasFailed: Bool? = pollUntil(within: .seconds(60)) {
            do throws(StoreError) {
                try copy.requireUnchanged()
                return nil
            } catch { return true }
        }
        #expect(hasFailed == true)
        copy.close(isChanged: false)
    }

    @Test("settings of the database server without which a crash can lose acknowledged bytes are reported once")
    func crashSafety() throws {
        let cluster = try PostgreSQLCluster(settings: ["full_page_writes": "off"])
        let database = { try Database(DatabaseURI(parsing: cluster.uri()), connections: 2) }
        let notes = Monitor<[ClusterObservation.Note]>([])
        var times = NodeSession.Times()
        times.renewal = 20_000_000
        let node = try ClusterNode(database: database(), control: database(), name: "a", times: times) { note in
            notes.withLock { $0.append(note) }
        }
        defer { node.close() }
        let isRenewed: Bool? = pollUntil(within: .seconds(60)) {
            node.counts.withLock { $0.session.renewals } > 2 ? true : nil
        }
        #expect(isRenewed == true)
        let texts = notes.withLock { $0 }.filter(\.isProblem).map(\.text)
        #expect(texts.map { $0.prefix { $0 != " " } } == ["fsync", "full_page_writes"], "\(texts)")
        var safety = CrashSafety()
        #expect(safety.observed(nil) == [])
        #expect(safety.observed("fsync full_page_writes").map(\.isProblem) == [true, true])
        #expect(safety.observed("fsync").map(\.isProblem) == [false])
        #expect(safety.observed("fsync") == [])
    }

    @Test("a copy into or out of a database reads all events, and leaves their delivery to the servers")
    func copyOfEvents() throws {
        let fixture = try ClusterFixture()
        // A copy of events does not use the object storage.
        let place = try place(in: fixture, isExclusive: false)
        defer { place.close(isChanged: false) }
        let row = CatalogRow.testing()
        try place.catalog.commit(.reporting(.insert(row), [UploadEvent(.created, of: row, at: 7)]))
        let copied = try place.catalog.events(after: 0, limit: 9)
        #expect(copied.map(\.event.upload) == [row.id.fingerprint])
        // The session of this server begins after that of the copy.
        let server = try fixture.node()
        let delivered = pollUntil(within: .seconds(20)) {
            (try? server.events(after: 0, limit: 9)).flatMap { $0.isEmpty ? nil : $0 }
        }
        #expect(delivered == copied)
    }

    @Test("a node opens no session before it has read the database's clock, and never uses that of its own system")
    func clock() throws {
        let fixture = try ClusterFixture()
        try fixture.node("a").close(saving: nil)
        // The clock of the database is 1000 s ahead, and its first reading fails.
        try fixture.run("CREATE SEQUENCE public.readings")
        try setClock(
            of: fixture,
            """
            IF current_query() LIKE 'SELECT (extract(epoch FROM clock_timestamp())%' AND nextval('public.readings') = 1
            THEN RAISE EXCEPTION USING ERRCODE = '57014', MESSAGE = 'test'; END IF;
            RETURN pg_catalog.clock_timestamp() + interval '1000 seconds';
            """)
        let node = try fixture.node("b").node
        let number: Int64? = pollUntil(within: .seconds(20)) { try? node.currentSession() }
        #expect(number != nil)
        let ahead = node.clock.wall - SystemClock.realtimeNanoseconds()
        #expect(ahead > 900_000_000_000 && ahead < 1_100_000_000_000, "\(ahead)")
        #expect(try fixture.run("SELECT last_value FROM public.readings").integer(0, 0) ?? 0 >= 2)
    }

    @Test("a node reports why it opens no session in a database that a newer version has changed")
    func newerSchema() throws {
        let fixture = try ClusterFixture()
        let notes = Monitor<[String]>([])
        var times = NodeSession.Times()
        times.renewal = 500_000_000
        let node = try ClusterNode(
            database: fixture.connect(), control: fixture.connect(), name: "a", times: times,
            report: { note in
                notes.withLock { $0.append(note.text) }
                notes.notifyAll()
            })
        defer { node.close() }
        let session = try node.currentSession()
        try fixture.run("INSERT INTO onward.migration (version, oldest) VALUES (99, 99)")
        // The session ends, for example because the database could not be reached for some time.
        try fixture.endSession(session)
        #expect(notes.wait(until: seconds(20)) { $0.contains { $0.contains("(schema 99)") } ? true : nil } == true)
        #expect(throws: StoreError.self) { try node.currentSession() }
        try fixture.run("DELETE FROM onward.migration WHERE version = 99")
        let next: Int64? = pollUntil(within: .seconds(20)) { try? node.currentSession() }
        #expect(next ?? 0 > session)
        #expect(notes.withLock { $0.count { $0.contains("(schema 99)") } } == 1)
    }

    /// Replaces the clock of the database for connections that are made from now on.
    /// - Parameter body: the body of the function that returns the time.
    private func setClock(of fixture: ClusterFixture, _ body: String) throws {
        try fixture.run(
            "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN \(body) END $$")
        try fixture.run(
            """
            DO $$ BEGIN
                EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
            END $$
            """)
    }

    @Test("after the clock of the database was set forward, no node removes uploads, final responses or old objects")
    func clockSetForward() throws {
        let fixture = try ClusterFixture()
        try fixture.node("a").close(saving: nil)
        try fixture.run("CREATE TABLE public.clock AS SELECT interval '0' AS ahead")
        try setClock(of: fixture, "RETURN pg_catalog.clock_timestamp() + (SELECT ahead FROM public.clock);")
        let catalog = try fixture.node("b") { $1.renewal = 500_000_000 }
        let node = catalog.node
        let area = try ObjectBlobArea(node: node, objects: fixture.objects, ledger: catalog.ledger)
        var configuration = StoreConfiguration(minFree: 0, processingWait: .zero)
        configuration.clock = { node.clock }
        let store = try UploadStore(catalog: catalog, area: area, configuration: configuration)
        defer { store.close() }
        let lease = try store.create(
            NewUpload(principal: "alice", method: .put, target: "/files/f", expiresAt: store.time + 604_800))
        let id = try #require(lease.id)
        try Array("abc".utf8).withUnsafeBytes { try lease.append($0) }
        let offset = try lease.acknowledge()
        lease.release()
        var finished = CatalogRow.testing(expiresAt: store.time + 86_400)
        finished.phase = .complete(Response(status: 201))
        try catalog.commit(.insert(finished))
        try fixture.objects.put("data/old/1-1", [1], until: .max)
        try fixture.run("INSERT INTO onward.garbage (object) VALUES ('data/old/1-1')")

        try fixture.run("UPDATE public.clock SET ahead = '8 days'")
        let isSet: Bool? = pollUntil(within: .seconds(30)) {
            node.clock.wall - SystemClock.realtimeNanoseconds() > 600_000_000_000_000
                && (try? catalog.commit(.probe)) != nil ? true : nil
        }
        #expect(isSet == true)
        #expect(store.sweep().expired == 0)
        #expect(try area.collector.collect().garbage == 0)
        #expect(try store.record(id).offset == offset)
        #expect(store.remaining(until: store.time - 86_400) > 3500)
        #expect(try catalog.row(finished.id)?.phase == finished.phase)
        #expect(fixture.objects.contents["data/old/1-1"] == [1])
    }

    @Test("the clock of the database is doubtful for an hour after it was set forward, also at the start of a node")
    func doubtfulClock() {
        let (second, hour): (Int64, Int64) = (1_000_000_000, 3600)
        let day = 24 * hour * second
        func system(_ seconds: Int64) -> ClockReading {
            ClockReading(wall: (1_700_000_000 + seconds) * second, boot: (500 + seconds) * second)
        }
        let lifetimes = LifetimeClock(after: nil, at: system(0), lifetime: 100, isShared: true)
        var clock = DatabaseClock()
        func expiryTime(_ seconds: Int64) -> Int64? { lifetimes.expiryTime(at: clock.reading(at: system(seconds))) }
        func observe(ahead: Int64, at seconds: Int64) -> ClusterObservation.Note? {
            let reading = system(seconds)
            return clock.observed(reading.wall + ahead, at: reading.boot, system: reading)
        }
        #expect(expiryTime(0) == nil && !clock.isKnown)
        #expect(observe(ahead: 59 * second, at: 0) == nil)
        #expect(expiryTime(10) == 1_700_000_069)
        #expect(observe(ahead: day, at: 20)?.isProblem == true)
        #expect(expiryTime(20) == nil && expiryTime(19 + hour) == nil)
        #expect(expiryTime(20 + hour) == 1_700_000_020 + 25 * hour)
        // The clock is corrected. Nothing expires until the end of the hour, in case the clock is set forward once
        // more.
        #expect(observe(ahead: 0, at: 30)?.isProblem == true)
        #expect(expiryTime(30) == nil && expiryTime(20 + hour) == 1_700_000_020 + hour)
        var started = DatabaseClock()
        let note = started.observed(system(0).wall + day, at: system(0).boot, system: system(0))
        #expect(note?.text.contains("86400 s ahead of the clock of this server") == true)
        #expect(lifetimes.expiryTime(at: started.reading(at: system(1))) == nil)
        let past = lifetimes.time(at: started.reading(at: system(1))) - 100
        #expect(lifetimes.remaining(until: past, at: started.reading(at: system(1))) == hour - 1)
    }
}
