import HTTPSemantics
import ObjectStorage
import PostgreSQL
import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import ClusterStorage
@testable import UploadStorage

/// Tests that the end of an upload is one transaction: its row, the name and the fields of its file, its retained request
/// and its event.
@Suite(.enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct PublicationTransactionTests {
    enum Kind: CaseIterable {
        /// A plain upload.
        case plain
        /// A short upload that has no row before its end.
        case short
        case recorded

        /// Creates an upload of this kind with all its bytes.
        func create(in store: UploadStore) throws -> UploadLease {
            let new = NewUpload(principal: "alice", method: .put, target: "/files/f", length: 100_000)
            let lease =
                switch self {
                case .plain: try store.createTransient(new)
                case .short: try store.create(new, shouldRecordAtOnce: false)
                case .recorded: try store.create(new)
                }
            try content(100_000).withUnsafeBytes { try lease.append($0) }
            return lease
        }
    }

    private let fixture: ClusterFixture
    private let catalog: ClusterCatalog
    private let store: UploadStore

    init() throws {
        fixture = try ClusterFixture()
        catalog = try fixture.node()
        store = try fixture.store(over: catalog) { configuration in
            configuration.shouldRecordEvents = true
            configuration.interruption = { _ in
                StoreConfiguration.Interruption(response: Response(status: 502), description: [1])
            }
        }
    }

    /// Takes over an upload.
    private func lease(_ id: UploadID) throws -> UploadLease {
        guard case .lease(let lease) = try store.takeOver(id, principal: "alice", waitForProcessing: .zero) else {
            throw StoreError.processing
        }
        return lease
    }

    private func publication(replaces: Bool = true) throws -> Publication {
        var publication = Publication(
            name: try #require(PublishedName(path: "d/f")), fields: ["Content-Type": "text/plain"]
        ) { created, _ in Response(status: created ? 201 : 200) }
        publication.canReplace = replaces
        return publication
    }

    private func count(_ table: String) throws -> Int64 {
        try fixture.run("SELECT count(*) FROM onward.\(table)").integer(0, 0) ?? -1
    }

    private func names() throws -> Int64 { try count("name WHERE NOT is_directory") }

    /// The events for ends of uploads.
    private func endings() throws -> [UploadEvent.Kind] {
        let rows = try fixture.run("SELECT content FROM onward.event ORDER BY number")
        return try (0..<rows.count).map { try UploadEvent(savedBytes: rows.bytes($0, 0) ?? []).kind }
            .filter { $0 != .created }
    }

    /// The objects with bytes of uploads.
    private var objects: Int { fixture.objects.contents.keys.count { $0.hasPrefix("data/") } }

    @Test("a file that another server stores during a removal is removed, too, unless it does not meet the condition")
    func removalOfReplacement() throws {
        let other = try fixture.store(over: fixture.node("b"))
        let publication = try publication()
        func publish(in store: UploadStore) throws {
            let lease = try Kind.recorded.create(in: store)
            _ = try lease.publish(publication)
            lease.release()
        }
        let name = publication.name
        try publish(in: store)
        let failures = Monitor<[any Error]>([])
        var tags: [EntityTag] = []
        func remove(isConditional: Bool) throws {
            tags = []
            try store.remove(name) { file in
                tags.append(file.entityTag)
                if tags.count == 1 {
                    do { try publish(in: other) } catch { failures.withLock { $0.append(error) } }
                }
                return !isConditional || file.entityTag == tags[0]
            }
        }
        #expect(throws: StoreError.preconditionFailed) { try remove(isConditional: true) }
        #expect(try tags.count == 2 && names() == 1)
        try remove(isConditional: false)
        #expect(try Set(tags).count == 2 && names() == 0)
        #expect(failures.withLock { $0.isEmpty })
    }

    /// The statement that fails among those that record the end of an upload.
    enum FailingStatement: String, CaseIterable {
        case fields = "name FOR EACH ROW WHEN (NEW.fields IS NOT NULL)"
        case event = "event FOR EACH ROW"
        case row = "upload FOR EACH ROW WHEN (NEW.phase = 2)"
    }

    @Test(
        "if one statement of a publication fails, nothing is published, and the next attempt publishes everything",
        arguments: Kind.allCases, FailingStatement.allCases)
    func failingStatement(kind: Kind, statement: FailingStatement) throws {
        if kind == .plain && statement == .row { return }
        let lease = try kind.create(in: store)
        try fixture.run(
            """
            CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'test' USING ERRCODE = '53100'; END $$
            """)
        try fixture.run(
            "CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON onward.\(statement.rawValue) EXECUTE FUNCTION fail()")
        #expect(throws: StoreError.insufficientSpace(nil)) { try lease.publish(publication()) }
        let id = try #require(kind == .plain ? UploadID() : lease.id)
        lease.release()
        #expect(try names() == 0 && endings() == [])
        try fixture.run("DROP FUNCTION fail CASCADE")
        if kind == .recorded {
            #expect(try store.record(id).phase == .receiving)
        } else {
            #expect(throws: StoreError.notFound) { try store.record(id) }
            // No transaction needs the objects of the failed one.
            #expect(pollUntil(within: .seconds(20)) { objects == 0 ? true : nil } == true)
        }
        let next = try kind == .recorded ? self.lease(id) : kind.create(in: store)
        #expect(try next.publish(publication()).status == 201)
        next.release()
        #expect(try catalog.file("d/f")?.fields["Content-Type"] == "text/plain")
        #expect(try endings() == [.completed])
        #expect(try store.publishedFile(#require(PublishedName(path: "d/f"))).readAll() == content(100_000))
    }

    @Test("a publication is one transaction, even if it replaces a file", arguments: Kind.allCases)
    func transactions(kind: Kind) throws {
        for status in [201, 200] as [Status] {
            let lease = try kind.create(in: store)
            let id = lease.id
            let before = try #require(try fixture.run("SELECT pg_current_xact_id()::text::bigint").integer(0, 0))
            #expect(try lease.publish(publication()).status == status)
            lease.release()
            // The event, the name and the row are versions of the same transaction.
            let versions = try fixture.run(
                """
                SELECT DISTINCT xmin::text::bigint FROM (
                    SELECT xmin FROM onward.name WHERE NOT is_directory
                    UNION ALL SELECT xmin FROM onward.upload WHERE id = $1 AND phase = 2
                    UNION ALL SELECT xmin FROM onward.event WHERE number >= $2::bigint << 20
                ) AS v
                """, [.bytes(id?.bytes ?? []), .integer(before)])
            #expect(versions.count == 1)
        }
        #expect(try endings() == [.completed, .completed])
    }

    @Test("a file that gets the name during the publication is not replaced", arguments: Kind.allCases)
    func occupied(kind: Kind) throws {
        let other = try fixture.store(over: fixture.node("b"))
        let lease = try kind.create(in: store)
        let (isDone, failures) = (Monitor(false), Monitor<[any Error]>([]))
        var publication = try self.publication(replaces: false)
        let others = publication
        // The other file appears after the name was looked up.
        publication.condition = { _ in
            let isFirst = isDone.withLock { isDone in
                defer { isDone = true }
                return !isDone
            }
            guard isFirst else { return nil }
            do {
                let lease = try other.createTransient(
                    NewUpload(principal: "bob", method: .put, target: "/files/f", length: 1))
                try [7 as UInt8].withUnsafeBytes { try lease.append($0) }
                _ = try lease.publish(others)
                lease.release()
            } catch { failures.withLock { $0.append(error) } }
            return nil
        }
        #expect(throws: StoreError.noFreeName) { try lease.publish(publication) }
        lease.release()
        #expect(failures.withLock { $0.isEmpty })
        #expect(try store.publishedFile(#require(PublishedName(path: "d/f"))).readAll() == [7])
        #expect(try catalog.file("d/f")?.principal == "bob")
    }

    @Test("the publication of a node that has lost the upload changes nothing")
    func overtaken() throws {
        let row = CatalogRow.testing()
        try catalog.commit(.insert(row))
        let second = try fixture.node("b")
        func publish(on node: ClusterCatalog, epoch: Int64) throws {
            let attributes = try PublishedFile.Attributes(blob: row.blob, size: 0, modified: 1)
            let completion = CatalogChange.Completion(
                id: row.id, epoch: epoch, offset: 0, response: Response(status: 201), expiresAt: 1 << 40,
                file: FileRecord(name: "g", principal: "alice", size: 0), upload: row.upload)
            try node.commit(
                .naming(
                    .reporting(.complete(completion), [UploadEvent(.completed, of: row, at: 7)]),
                    .file(#require(PublishedName(path: "g")), attributes, blob: row.blob, replaced: nil)))
        }
        #expect(throws: StoreError.superseded) { try publish(on: second, epoch: 1) }
        try fixture.run("UPDATE onward.upload SET holder = NULL")
        let held = try #require(try second.acquireNow(row.id))
        #expect(throws: StoreError.superseded) { try publish(on: catalog, epoch: 1) }
        #expect(try names() == 0 && endings() == [])
        try publish(on: second, epoch: held.row.epoch)
        #expect(throws: StoreError.superseded) { try publish(on: second, epoch: held.row.epoch) }
        #expect(try names() == 1 && endings() == [.completed])
    }

    @Test("publications under one name store their bytes at the same time, so they fail together if the storage stalls")
    func stalledStorage() throws {
        let requests = Counter()
        let hasEnded = Monitor(false)
        fixture.objects.setFault { operation in
            guard case .put(let key, _) = operation, key.hasPrefix("data/") else { return nil }
            requests.next()
            hasEnded.waitForever { $0 ? () : nil }
            return .fail(.unavailable("test"))
        }
        let failures = Monitor<[StoreError]>([])
        let threads = try (0..<4).map { _ in
            let lease = try Kind.plain.create(in: store)
            let publication = try publication()
            return try WorkerThread(name: "client") {
                do throws(StoreError) { _ = try lease.publish(publication) } catch {
                    failures.withLock { $0.append(error) }
                }
                lease.release()
            }
        }
        let areStoring: Bool? = pollUntil(within: .seconds(20)) { requests.value == 4 ? true : nil }
        hasEnded.withLock { $0 = true }
        hasEnded.notifyAll()
        for thread in threads { thread.join() }
        #expect(areStoring == true)
        #expect(failures.withLock { $0.count } == 4)
    }

    @Test("a request is retained only together with the end of its upload, and only with all its bytes")
    func retention() throws {
        let overtaken = try Kind.recorded.create(in: store)
        let id = try #require(overtaken.id)
        try overtaken.beginProcessing(shouldMarkDurably: true)
        // Another server acquires the upload after the end of the session, and completes it.
        let second = try fixture.node("b")
        try fixture.run("UPDATE onward.upload SET holder = NULL")
        let held = try #require(try second.acquireNow(id))
        try second.commit(
            .complete(
                CatalogChange.Completion(
                    id: id, epoch: held.row.epoch, offset: 100_000, response: Response(status: 200),
                    expiresAt: 1 << 40, file: nil, upload: held.row.upload)))
        #expect(throws: StoreError.superseded) { try overtaken.completeAsInterrupted() }
        overtaken.release()
        #expect(try count("retained") == 0)

        let complete = try Kind.recorded.create(in: store)
        try complete.beginProcessing(shouldMarkDurably: true)
        #expect(try complete.completeAsInterrupted().status == 502)
        complete.release()
        #expect(try count("retained") == 1)

        let damaged = try Kind.recorded.create(in: store)
        let lost = try #require(damaged.id)
        try damaged.beginProcessing(shouldMarkDurably: true)
        try fixture.run(
            "DELETE FROM onward.piece WHERE blob = (SELECT blob FROM onward.upload WHERE id = $1)",
            [.bytes(lost.bytes)])
        var limits = ClusterCheck.Limits()
        limits.removalTime = .zero
        var findings: [CheckFinding] = []
        let inspection = try ClusterInspection(fixture.database, fixture.objects)
        _ = try ClusterCheck(inspection, limits).run { findings.append($0) }
        #expect(findings.count { $0.kind == .bytesMissing } == 1, "\(findings)")
        #expect(throws: StoreError.stateLost) { try damaged.completeAsInterrupted() }
        damaged.release()
        #expect(try count("retained") == 1)
        // The next request finds the loss.
        #expect(throws: StoreError.self) { try self.lease(lost) }
        guard case .invalid = try store.record(lost).phase else {
            Issue.record("the upload must be invalid")
            return
        }
        #expect(try count("retained") == 1)
    }

    @Test(
        "simultaneous uploads that have no row before their end do not exceed the quota together",
        arguments: [Kind.plain, .short])
    func quota(kind: Kind) throws {
        let quota: Int64 = 150_000
        let catalog = try fixture.node("q") { configuration, _ in configuration.quotaPerPrincipal = quota }
        let store = try fixture.store(over: catalog) { $0.quotaPerPrincipal = quota }
        let (first, second) = (try kind.create(in: store), try kind.create(in: store))
        var publication = Publication(name: try #require(PublishedName(path: "e"))) { _, _ in Response(status: 201) }
        #expect(try first.publish(publication).status == 201)
        publication.name = try #require(PublishedName(path: "f"))
        #expect(throws: StoreError.quotaExceeded(limit: quota)) { try second.publish(publication) }
        first.release()
        second.release()
        #expect(try names() == 1)
        let usage = try catalog.sharedUsage(of: "alice")["alice"]
        #expect(usage == Usage(uploads: 0, reservedBytes: 0, publishedBytes: 100_000))
    }
}
