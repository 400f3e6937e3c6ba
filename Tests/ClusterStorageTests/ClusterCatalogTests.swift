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
struct ClusterCatalogTests {
    private func completion(_ row: CatalogRow, file: FileRecord? = nil) -> CatalogChange {
        .complete(
            CatalogChange.Completion(
                id: row.id, epoch: 9, offset: 3, response: Response(status: 201), expiresAt: 1, file: file,
                upload: row.upload.withoutFields))
    }

    // MARK: Events

    @Test("an event of a long transaction is not skipped, and until it ends later events wait")
    func longTransaction() throws {
        let fixture = try ClusterFixture()
        let catalog = try fixture.node()
        let (early, late) = (CatalogRow.testing(), CatalogRow.testing())
        let database = fixture.database
        let content = UploadEvent(.created, of: early, at: 7).savedBytes
        let thread = try WorkerThread(name: "long") {
            // The transaction gets its number before the other one, and records its event after it.
            _ = try? database.transaction([
                DatabaseStatement("SELECT pg_current_xact_id()"), DatabaseStatement("SELECT pg_sleep(2)::text"),
                DatabaseStatement(
                    "SELECT onward.record_events($1, $2)::text", [.integers([1]), .byteArrays([content])]),
            ])
        }
        let isRunning = pollUntil(within: .seconds(10)) {
            (try? fixture.run(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND query LIKE '%sleep%'"
            )
            .integer(0, 0)) ?? 0 > 0 ? true : nil
        }
        #expect(isRunning == true)
        try catalog.commit(.reporting(.insert(late), [UploadEvent(.created, of: late, at: 7)]))
        #expect(try catalog.countEvents().waiting == 1)
        #expect(try catalog.events(after: 0, limit: 9) == [])
        thread.join()
        let entries = pollUntil(within: .seconds(10)) {
            (try? catalog.events(after: 0, limit: 9)).flatMap { $0.count == 2 ? $0 : nil }
        }
        #expect(entries?.map(\.event.upload) == [early.id.fingerprint, late.id.fingerprint])
    }

    @Test("one living node delivers events, and is notified of events of other nodes")
    func delivery() throws {
        let fixture = try ClusterFixture()
        let (first, second) = (try fixture.node("a"), try fixture.node("b"))
        let calls = Counter()
        first.onEvents { calls.next() }
        let row = CatalogRow.testing()
        try second.commit(.reporting(.insert(row), [UploadEvent(.created, of: row, at: 7)]))
        #expect(pollUntil(within: .seconds(10)) { calls.value > 0 ? true : nil } == true)
        let entries = try first.events(after: 0, limit: 9)
        #expect(entries.map(\.event.upload) == [row.id.fingerprint])
        #expect(try second.events(after: 0, limit: 9) == [] && !second.hasEvent(entries[0].number))
        let surplus = CatalogChange.outbox(.drop(before: .max, limit: 1, isOnlySetAside: false))
        #expect(try second.commit(surplus).events == [])
        first.close(saving: nil)
        #expect(try second.events(after: 0, limit: 9) == entries && second.hasEvent(entries[0].number))
    }

    @Test("a node that does not deliver events reads none of them to drop some")
    func droppedEvents() throws {
        let fixture = try ClusterFixture()
        let (first, second) = (try fixture.node("a"), try fixture.node("b"))
        let stores = try [fixture.store(over: first), fixture.store(over: second)]
        for store in stores { store.onEvents {} }
        for row in [CatalogRow.testing(), CatalogRow.testing()] {
            try second.commit(.reporting(.insert(row), [UploadEvent(.created, of: row, at: 7)]))
        }
        let delivers: Bool? = pollUntil(within: .seconds(20)) { first.node.isDelivering ? true : nil }
        #expect(delivers == true && !second.node.isDelivering)
        let entries = try #require(
            pollUntil(within: .seconds(10)) { () -> [OutboxEntry]? in
                (try? first.events(after: 0, limit: 9)).flatMap { $0.count == 2 ? $0 : nil }
            })
        #expect(try stores[0].dropEvents(olderThan: 0, keeping: 1) == [entries[0].number])
        // Reading the table would fail.
        try fixture.run("ALTER TABLE onward.event RENAME TO hidden")
        #expect(throws: StoreError.self) { try stores[0].dropEvents(olderThan: 0, keeping: 1) }
        #expect(try stores[1].dropEvents(olderThan: 0, keeping: 1) == [])
        try fixture.run("ALTER TABLE onward.hidden RENAME TO event")
    }

    @Test("a node that delivers events again after another node has ended starts with the first one")
    func deliveryAgain() throws {
        let fixture = try ClusterFixture()
        let first = try fixture.node("a")
        first.onEvents {}
        let row = CatalogRow.testing()
        try first.commit(.reporting(.insert(row), [UploadEvent(.created, of: row, at: 7)]))
        let entry = try #require(pollUntil(within: .seconds(10)) { try? first.events(after: 0, limit: 9).first })
        let second = try fixture.node("b")
        let session = try first.node.currentSession()
        try fixture.run("DELETE FROM onward.node WHERE session = $1", [.integer(session)])
        #expect(throws: StoreError.self) { try first.commit(.probe) }
        #expect(
            pollUntil(within: .seconds(10)) {
                (try? first.node.currentSession()).map { $0 != session } == true ? true : nil
            } == true)
        // The other node reads the event, and ends before it has delivered it.
        #expect(try second.events(after: 0, limit: 9) == [entry])
        #expect(try first.events(after: entry.number, limit: 9) == [] && !first.hasEvent(entry.number))
        let sees = pollUntil(within: .seconds(10)) { first.node.isDelivering ? nil : true }
        #expect(sees == true)
        second.close(saving: nil)
        let again = pollUntil(within: .seconds(10)) {
            (try? first.events(after: entry.number, limit: 9)).flatMap { $0.isEmpty ? nil : $0 }
        }
        #expect(again == [entry])
        #expect(try first.events(after: entry.number, limit: 9) == [])
    }

    @Test("after a backup was restored in another server, events keep their order and are before new events")
    func restored() throws {
        let fixture = try ClusterFixture()
        let first = try fixture.node()
        let rows = (0..<3).map { _ in CatalogRow.testing() }
        for row in rows { try first.commit(.reporting(.insert(row), [UploadEvent(.created, of: row, at: 7)])) }
        first.close(saving: nil)
        try fixture.run("UPDATE onward.event SET number = number + (1000000::bigint << 20)")
        try fixture.run("UPDATE onward.usage_position SET first = 1000000")
        let catalog = try fixture.node()
        let next = CatalogRow.testing()
        try catalog.commit(.reporting(.insert(next), [UploadEvent(.created, of: next, at: 7)]))
        let entries = pollUntil(within: .seconds(10)) {
            (try? catalog.events(after: 0, limit: 9)).flatMap { $0.count == 4 ? $0 : nil }
        }
        #expect(entries?.map(\.event.upload) == (rows + [next]).map(\.id.fingerprint))
        #expect(try catalog.sharedUsage(of: "alice")["alice"]?.uploads == 4)
    }

    // MARK: Usage

    @Test("limits of a principal hold for all nodes together, and the usage is exact")
    func limits() throws {
        let fixture = try ClusterFixture()
        let nodes = try (0..<2).map { index in
            try fixture.node("\(index)") { configuration, _ in
                configuration.maxUploadsPerPrincipal = 10
                configuration.quotaPerPrincipal = 1000
            }
        }
        let inserted = Monitor<[(Int, CatalogRow)]>([])
        let errors = Monitor<[StoreError]>([])
        let threads = try (0..<4).map { thread in
            try WorkerThread(name: "client") {
                for _ in 0..<5 {
                    let row = CatalogRow.testing(length: 100)
                    do throws(StoreError) {
                        try nodes[thread % 2].commit(.insert(row))
                        inserted.withLock { $0.append((thread % 2, row)) }
                    } catch {
                        errors.withLock { $0.append(error) }
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        let rows = inserted.withLock { $0 }
        #expect(rows.count == 10 && errors.withLock { $0 }.allSatisfy { $0 == .tooManyUploads(limit: 10) })
        let full = ["alice": Usage(uploads: 10, reservedBytes: 1000)]
        #expect(try nodes[1].sharedUsage(of: nil) == full && nodes[0].sharedUsage(of: "alice") == full)
        #expect(try nodes[0].sharedUsage(of: "bob") == [:])
        // The sums of earlier changes are kept when later changes are added to them.
        try fixture.run("SELECT onward.add_usage_changes(1)::text")
        #expect(try nodes[0].sharedUsage(of: "alice") == full)
        // Another principal has its own limits.
        try nodes[0].commit(.insert(.testing(principal: "bob", length: 1000)))
        #expect(throws: StoreError.quotaExceeded(limit: 1000)) {
            try nodes[1].commit(.insert(.testing(principal: "bob", length: 1)))
        }
        for (node, row) in rows.prefix(5) { try nodes[node].commit(completion(row)) }
        try nodes[0].commit(.delete([CatalogChange.Removal(id: rows[0].1.id, epoch: 100)]))
        try fixture.run("SELECT onward.add_usage_changes(1)::text")
        #expect(try nodes[0].sharedUsage(of: "alice") == ["alice": Usage(uploads: 5, reservedBytes: 500)])
        for (node, row) in rows.suffix(5) { try nodes[node].commit(completion(row)) }
        #expect(try nodes[0].sharedUsage(of: "alice") == [:])
    }

    @Test("an upload of unknown length cannot grow beyond the quota, and keeps its offset then")
    func growth() throws {
        let fixture = try ClusterFixture()
        let catalog = try fixture.node { configuration, _ in configuration.quotaPerPrincipal = 1000 }
        let row = CatalogRow.testing()
        try catalog.storeBytes(of: row)
        try catalog.commit(.insert(row))
        func advance(_ offset: Int64, length: Int64? = nil) throws(StoreError) {
            try catalog.commit(
                .advance(
                    CatalogChange.Advance(id: row.id, epoch: 1, offset: offset, length: length, digestStates: [])))
        }
        try advance(900)
        #expect(throws: StoreError.quotaExceeded(limit: 1000)) { try advance(1001) }
        #expect(throws: StoreError.quotaExceeded(limit: 1000)) { try advance(900, length: 1001) }
        try advance(1000, length: 1000)
        #expect(try catalog.sharedUsage(of: "alice")["alice"]?.reservedBytes == 1000)
        #expect(try catalog.row(row.id)?.offset == 1000)
    }

    @Test("changes with many bytes in rows of pieces are made in several transactions")
    func manyBytes() throws {
        let fixture = try ClusterFixture()
        let catalog = try fixture.node()
        let area = try ObjectBlobArea(node: catalog.node, objects: MemoryObjectStore(), ledger: catalog.ledger)
        defer { area.close() }
        let rows = (0..<300).map { _ in CatalogRow.testing() }
        let blobs = try rows.map { row in
            let blob = try area.create(row.blob)
            try blob.append([UInt8](repeating: 1, count: 65_536))
            try blob.synchronize(including: .name)
            return blob
        }
        let before = catalog.statistics
        let outcomes = catalog.commit(rows.map { .insert($0) })
        #expect(outcomes.count == 300 && outcomes.allSatisfy { $0 == .success(RemovedRows()) })
        // The first transaction has 16 MiB.
        #expect(catalog.statistics.transactions - before.transactions == 2)
        #expect(catalog.statistics.changes - before.changes == 300)
        #expect(try fixture.run("SELECT count(*) FROM onward.piece WHERE size = 65536").integer(0, 0) == 300)
        withExtendedLifetime(blobs) {}
    }

    @Test("if a change of a batch is rejected and then the database fails, the others do not wait for it in turn")
    func failureAfterRejection() throws {
        let fixture = try ClusterFixture()
        let catalog = try fixture.node()
        // A sequence also counts attempts that are rolled back. The batch is rejected, and every later attempt is canceled,
        // as by the time limit for statements.
        try fixture.run("CREATE SEQUENCE attempt")
        try fixture.run(
            """
            CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF nextval('attempt') = 1 THEN RAISE EXCEPTION 'rejected'; END IF;
                RAISE EXCEPTION 'canceled' USING ERRCODE = '57014';
            END $$
            """)
        try fixture.run("CREATE TRIGGER reject BEFORE INSERT ON onward.upload EXECUTE FUNCTION reject()")
        let outcomes = catalog.commit((0..<50).map { _ in .insert(.testing()) })
        #expect(outcomes.count == 50)
        for outcome in outcomes {
            guard case .failure(.unavailable(let reason)) = outcome else {
                Issue.record("\(outcome)")
                continue
            }
            #expect(reason.contains("canceled"))
        }
        #expect(try fixture.run("SELECT last_value FROM attempt").integer(0, 0) == 3)
    }

    /// The number of buffers that a statement reads.
    private func buffers(_ sql: String, _ fixture: ClusterFixture) throws -> Int {
        let rows = try fixture.run("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) \(sql)")
        let lines = (0..<rows.count).compactMap { rows.text($0, 0) }
        // The first line with buffers contains those of the lines below it.
        let line = try #require(lines.first { $0.contains("Buffers: ") })
        return line.split(separator: " ").compactMap { word in
            let parts = word.split(separator: "=")
            return ["hit", "read"].contains(parts.first) && parts.count == 2 ? Int(parts[1]) : nil
        }.reduce(0, +)
    }

    @Test("during a long dump it does not become slower to read the usage of a principal, or to add it up")
    func dump() throws {
        // Rows are read as long as an earlier transaction that has changed something is running, in any database of the
        // server. So no other test may use it.
        let fixture = try ClusterFixture(ownsServer: true)
        try fixture.database.updateClusterSchema()
        let (dump, isEnded) = (fixture.connect(timeout: .seconds(300)), Monitor(false))
        let thread = try WorkerThread(name: "dump") {
            _ = try? dump.run(DatabaseStatement("SELECT pg_sleep(240)::text"))
            isEnded.withLock { $0 = true }
        }
        let sleeping = "pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(240)%' AND datname = current_database()"
        defer {
            _ = try? fixture.run("SELECT pg_cancel_backend(pid) FROM \(sleeping)")
            thread.join()
            dump.close()
        }
        #expect(
            pollUntil(within: .seconds(20)) {
                (try? fixture.run("SELECT count(*) FROM \(sleeping) AND state = 'active'").integer(0, 0)) == 1
                    ? true : nil
            } == true)
        // Each node and each request executes these statements frequently.
        let statements = [
            "SELECT onward.add_usage_changes(500)", "SELECT * FROM onward.current_usage('alice')",
            "SELECT * FROM onward.current_usage(NULL)", "SELECT onward.admit('alice', 0, 1, NULL, 1::bigint << 40)",
        ]
        var counts: [String: [Int]] = [:]
        for round in 1...20 {
            try fixture.run(
                """
                INSERT INTO onward.usage_change (principal, uploads, reserved, published)
                SELECT 'alice', 0, 1, 0 FROM generate_series(1, 1000)
                """)
            try fixture.run("SELECT onward.add_usage_changes(1)::text")
            #expect(try fixture.run("SELECT reserved FROM onward.usage").integer(0, 0) == Int64(round * 1000))
            // The statistics of a table from which all rows are deleted soon: every plan seems to cost nothing.
            try fixture.run("ANALYZE onward.usage_change")
            for statement in statements { counts[statement, default: []].append(try buffers(statement, fixture)) }
        }
        #expect(isEnded.withLock { !$0 })
        // More changes than one transaction adds are counted nevertheless.
        try fixture.run(
            """
            INSERT INTO onward.usage_change (principal, uploads, reserved, published)
            SELECT 'alice', 0, 1, 0 FROM generate_series(1, 6000)
            """)
        try fixture.run("SELECT onward.add_usage_changes(1)::text")
        #expect(
            try fixture.run("SELECT reserved::bigint FROM onward.current_usage('alice')").integer(0, 0) == 26_000)
        // Delivered events are not read again either.
        try fixture.run(
            """
            INSERT INTO onward.event (number, "time", content, state) SELECT n, 0, '', 0 FROM generate_series(1, 20000) AS n
            """)
        try fixture.run("DELETE FROM onward.event")
        let session = try fixture.run(
            """
            INSERT INTO onward.node (name, alive_until) VALUES ('a', clock_timestamp() + interval '25 seconds')
            RETURNING session
            """
        ).integer(0, 0)
        let search = ClusterSQL.selectLastEvent.replacing("$1", with: "\(session ?? 0)").replacing("$2", with: "20000")
        let events = try buffers(search, fixture)
        #expect(events < 30, "\(events)")
        // Only a version of each row of the sums remains for each addition.
        for (statement, counts) in counts { #expect(counts.suffix(10).min() ?? 0 < 60, "\(statement): \(counts)") }
    }

    @Test("one run of the regular work adds all changes of the usage that wait, however many there are")
    func manyChanges() throws {
        let fixture = try ClusterFixture()
        try fixture.database.updateClusterSchema()
        let session = try fixture.run(
            "INSERT INTO onward.node (name, alive_until) VALUES ('a', '-infinity') RETURNING session"
        ).integer(0, 0)
        let node = ClusterNode(database: fixture.database, session: try #require(session))
        try fixture.run(
            """
            INSERT INTO onward.usage_change (principal, uploads, reserved, published)
            SELECT 'alice', 0, 1, 0 FROM generate_series(1, 12000)
            """)
        // A session that does not deliver events adds nothing.
        ClusterNode(database: fixture.database, session: -1).addUsageChanges(until: .max)
        #expect(try fixture.run("SELECT count(*) FROM onward.usage_change").integer(0, 0) == 12_000)
        let remaining = try pollUntil(within: .seconds(120)) { () -> Int64? in
            try fixture.run("UPDATE onward.node SET alive_until = clock_timestamp() + interval '29 seconds'")
            node.addUsageChanges(until: .max)
            let count = try fixture.run("SELECT count(*) FROM onward.usage_change").integer(0, 0)
            // On a machine that stalls, the session can have ended before.
            return count == 12_000 ? nil : count
        }
        #expect(remaining == 0)
        #expect(try fixture.run("SELECT reserved FROM onward.usage").integer(0, 0) == 12_000)
    }

    // MARK: Files

    @Test("the record of a file is in the row of its name, and counts toward the quota until the file is replaced")
    func files() throws {
        let fixture = try ClusterFixture()
        let catalog = try fixture.node()
        func publish(
            _ change: CatalogChange, _ record: FileRecord, replacing tag: String? = nil
        ) throws -> String {
            let blob = UploadID().text
            let bytes = [UInt8](repeating: 1, count: Int(record.size))
            try fixture.run(
                "INSERT INTO onward.piece (blob, start, size, data) VALUES ($1, 0, $2, $3)",
                [.text(blob), .integer(record.size), .bytes(bytes)])
            let attributes = try PublishedFile.Attributes(
                blob: blob, size: record.size, modified: record.modifiedSeconds * 1_000_000_000 + 7)
            let name = try #require(PublishedName(path: record.name))
            try catalog.commit(.naming(change, .file(name, attributes, blob: blob, replaced: tag)))
            return attributes.entityTag.opaque
        }
        func record(_ name: String, size: Int64, seconds: Int64) -> FileRecord {
            FileRecord(
                name: name, principal: "alice", size: size, identity: "\(seconds).7", modifiedSeconds: seconds,
                fields: ["Content-Type": "text/plain"])
        }
        try fixture.run(ClusterSQL.makeDirectories, [.texts(["", "a"]), .texts(["a", "b"])])
        let row = CatalogRow.testing()
        try catalog.commit(.insert(row))
        #expect(try catalog.file("a/b/c") == nil)
        let first = record("a/b/c", size: 3, seconds: 5)
        _ = try publish(completion(row, file: first), first)
        #expect(try catalog.file("a/b/c") == first && catalog.row(row.id)?.isUnfinished == false)
        let second = record("z", size: 4, seconds: 6)
        let tag = try publish(.recordFile(second, ending: nil), second)
        #expect(try catalog.files(after: "", limit: 9) == [second, first])
        #expect(try catalog.files(after: "z", limit: 9) == [first])
        #expect(try catalog.sharedUsage(of: "alice")["alice"]?.publishedBytes == 7)
        let third = record("z", size: 10, seconds: 7)
        _ = try publish(.recordFile(third, ending: nil), third, replacing: tag)
        #expect(throws: StoreError.preconditionFailed) {
            try publish(.recordFile(second, ending: nil), second, replacing: tag)
        }
        #expect(try catalog.file("z") == third)
        #expect(try catalog.sharedUsage(of: "alice")["alice"]?.publishedBytes == 13)
        // A file that was copied without a record.
        _ = try publish(.probe, record("y", size: 1, seconds: 8))
        #expect(try catalog.file("y") == nil && catalog.sharedUsage(of: "alice")["alice"]?.publishedBytes == 13)
        try fixture.run("DELETE FROM onward.name")
        #expect(try catalog.sharedUsage(of: nil) == [:])
    }

    // MARK: The schema and the clock

    @Test("nodes that start at the same time migrate once; a node refuses a schema that is too new for it")
    func migrations() throws {
        let fixture = try ClusterFixture()
        let failures = Monitor<[StoreError]>([])
        let threads = try (0..<4).map { _ in
            let database = fixture.connect()
            return try WorkerThread(name: "node") {
                do throws(StoreError) { try database.updateClusterSchema() } catch {
                    failures.withLock { $0.append(error) }
                }
                database.close()
            }
        }
        for thread in threads { thread.join() }
        #expect(failures.withLock { $0 } == [])
        let count = try fixture.run("SELECT count(*) FROM onward.migration").integer(0, 0)
        #expect(count == Int64(ClusterSQL.migrations.count))
        // A newer version that older nodes can use, and one that they cannot use.
        try fixture.run("INSERT INTO onward.migration (version, oldest) VALUES (98, 1)")
        try fixture.database.updateClusterSchema()
        try fixture.run("INSERT INTO onward.migration (version, oldest) VALUES (99, 98)")
        #expect(throws: StoreError.newerSchema(99)) { try fixture.database.updateClusterSchema() }
    }

    @Test("the first start with an empty database causes no error that would be logged")
    func emptyDatabase() throws {
        let fixture = try ClusterFixture()
        let errors = Monitor<[DatabaseError]>([])
        let database = Database(fixture.uri) { report in
            if let error = report.error { errors.withLock { $0.append(error) } }
        }
        defer { database.close() }
        try database.updateClusterSchema()
        #expect(errors.withLock { $0 } == [])
    }

    @Test("the clock is that of the database")
    func clock() throws {
        let fixture = try ClusterFixture()
        let catalog = try fixture.node()
        let seconds = try #require(
            try fixture.run("SELECT extract(epoch FROM clock_timestamp())::bigint").integer(0, 0))
        #expect(abs(catalog.node.clock.wall / 1_000_000_000 - seconds) <= 2)
        #expect(try catalog.timeMark() == nil)
    }

    // MARK: Failures

    @Test("while the database is stopped or killed changes fail as unavailable; afterwards the node continues")
    func restart() throws {
        let fixture = try ClusterFixture(ownsServer: true)
        let catalog = try fixture.node(timeout: .seconds(2))
        for kills in [false, true] {
            let row = CatalogRow.testing()
            try catalog.storeBytes(of: row)
            try catalog.commit(.insert(row))
            if kills { fixture.cluster.kill() } else { try fixture.cluster.stop() }
            guard case .failure(.unavailable) = catalog.commit([.insert(.testing())])[0] else {
                Issue.record("the change must fail as unavailable")
                return
            }
            #expect(throws: StoreError.self) { try catalog.row(row.id) }
            try fixture.cluster.start()
            let read = pollUntil(within: .seconds(10)) { try? catalog.row(row.id) }
            #expect(read == row)
            let change = CatalogChange.Advance(id: row.id, epoch: 1, offset: 5, length: nil, digestStates: [])
            #expect(
                pollUntil(within: .seconds(10)) {
                    if case .success = catalog.commit([.advance(change)])[0] { true } else { nil }
                } == true)
            #expect(catalog.holds(row.id, fence: 1))
        }
    }

    @Test("the unknown outcome of a commit is resolved before a row is read, and the commit changes nothing later")
    func unknownOutcome() throws {
        let fixture = try ClusterFixture(ownsServer: true)
        let catalog = try fixture.node(timeout: .seconds(1))
        let row = CatalogRow.testing()
        try catalog.storeBytes(of: row)
        try catalog.commit(.insert(row))
        let change = CatalogChange.Advance(id: row.id, epoch: 1, offset: 5, length: nil, digestStates: [])
        let before = catalog.node.session.withLock { $0.batch }
        try fixture.cluster.paused {
            #expect(throws: StoreError.self) { try catalog.commit(.advance(change)) }
            #expect(throws: StoreError.self) { try catalog.row(row.id) }
        }
        let offset = try #require(pollUntil(within: .seconds(10)) { try? catalog.row(row.id) }).offset
        #expect(catalog.node.session.withLock { $0.batch } > before)
        #expect([0, 5].contains(offset))
        // A transaction of the earlier batch that arrives now is rejected.
        #expect(throws: DatabaseError.self) {
            try fixture.run(
                ClusterSQL.beginBatch, [.integer(try catalog.node.currentSession()), .integer(before)])
        }
        var next = change
        next.offset = 6
        try catalog.commit(.advance(next))
        #expect(try catalog.row(row.id)?.offset == 6)
    }
}
