import ObjectStorage
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import ClusterStorage

/// Tests that collectors delete what nothing needs, and nothing else.
@Suite(.serialized, .enabled(if: PostgreSQLCluster.isInstalled, Comment(rawValue: PostgreSQLCluster.requirement)))
struct PieceCollectorTests {
    private static let small = PieceLimits(maxSize: 4096, maxInlineSize: 256, minMemory: 128, memory: 1 << 20)

    private let fixture: AreaFixture

    init() throws { fixture = try AreaFixture() }

    private var objects: Set<String> {
        Set(fixture.objects.contents.keys).subtracting([PieceCollector.identityKey, PieceCollector.conditionKey])
    }

    private func store(_ bytes: [UInt8], in blob: String, by node: AreaFixture.Node) throws -> any Blob {
        let opened = try node.area.create(blob)
        try opened.append(bytes)
        try opened.synchronize(including: .name)
        return opened
    }

    @Test("objects that no row names are deleted after the session that stored them has ended, and not before")
    func orphans() throws {
        let (dead, living) = (try fixture.node(Self.small), try fixture.node(Self.small))
        try fixture.insertUpload("a", holder: dead)
        let recorded = try store(content(20_000), in: "a", by: dead)
        try fixture.record("a", offset: 20_000, by: dead)
        let unrecorded = try (store(content(20_000), in: "b", by: dead), store(content(20_000), in: "c", by: living))
        let collector = fixture.collector()
        #expect(try collector.collect() == PieceCollector.Report())
        try fixture.end(dead)
        #expect(try collector.collect().orphans == 5)
        // The transaction that would name them is rejected, and so are all later ones.
        #expect(throws: (any Error).self) { try fixture.record("b", offset: 20_000, by: dead) }
        try fixture.insertUpload("c", holder: living)
        try fixture.record("c", offset: 20_000, by: living)
        #expect(try objects == fixture.namedObjects())
        #expect(try living.area.open("a").readAll() == content(20_000))
        #expect(try living.area.open("c").readAll() == content(20_000))
        withExtendedLifetime((recorded, unrecorded)) {}
    }

    @Test(
        "an object that a check of the storage has left behind is deleted after its session has ended, and not before")
    func probes() throws {
        let node = try fixture.node(Self.small)
        fixture.objects.setFault { operation in
            if case .delete = operation { .fail(.unavailable("test")) } else { nil }
        }
        #expect(throws: Errno.timedOut) { try node.area.probe() }
        fixture.objects.setFault { _ in nil }
        let key = "probe/\(node.session)"
        #expect(try fixture.collector().collect().orphans == 0)
        #expect(objects == [key])
        try fixture.end(node)
        // Objects with other names are not touched.
        try fixture.objects.put("probe/notes", [])
        #expect(try fixture.collector().collect().orphans == 1)
        #expect(objects == ["probe/notes"])
    }

    @Test("an object that is stored late, after its session was removed, is deleted by the next search")
    func lateObjects() throws {
        let node = try fixture.node(Self.small)
        fixture.objects.setFault { operation in
            if case .put(let key, _) = operation, key.hasPrefix("data/") { .postpone } else { nil }
        }
        #expect(throws: Errno.timedOut) { _ = try store(content(1000), in: "a", by: node) }
        try fixture.end(node)
        #expect(try fixture.collector().collect().orphans == 0)
        fixture.objects.performPostponed()
        #expect(objects.count == 1)
        #expect(try fixture.collector().collect().orphans == 1)
        #expect(objects.isEmpty)
    }

    @Test("the object of a request that has failed is deleted, although the session that sent the request continues")
    func failedRequests() throws {
        let node = try fixture.node(Self.small)
        fixture.objects.setFault { operation in
            if case .put(let key, _) = operation, key.hasPrefix("data/") { .loseResponse } else { nil }
        }
        #expect(throws: Errno.timedOut) { _ = try store(content(1000), in: "a", by: node) }
        #expect(objects.count == 1)
        try node.catalog.commit(.probe)
        #expect(try fixture.count("onward.garbage") == 1)
        #expect(try fixture.collector { $0.gracePeriod = .seconds(3600) }.collect().garbage == 0)
        #expect(try fixture.collector().collect().garbage == 1)
        #expect(objects.isEmpty)
    }

    @Test("the next transaction makes unneeded objects garbage, but none that a row names")
    func unneededObjects() throws {
        let node = try fixture.node(Self.small)
        try fixture.insertUpload("a", holder: node)
        let blob = try store(content(1000), in: "a", by: node)
        try fixture.record("a", offset: 1000, by: node)
        let named = try #require(fixture.namedObjects().first)
        try fixture.objects.put("data/b/\(node.session)-99", [1])
        node.ledger.add(unneeded: [named, "data/b/\(node.session)-99"])
        try node.catalog.commit(.probe)
        #expect(try fixture.count("onward.garbage WHERE object = 'data/b/\(node.session)-99'") == 1)
        #expect(try fixture.collector().collect().garbage == 1)
        #expect(objects == [named])
        withExtendedLifetime(blob) {}
    }

    /// The end of the transaction with an object that nothing needs any more.
    enum Ending: CaseIterable { case rejected, lost, committed }

    @Test(
        "the object of a transaction that ended without a known success is deleted, unless the transaction was committed",
        arguments: Ending.allCases)
    func endedTransactions(_ ending: Ending) throws {
        let node = try fixture.node(Self.small)
        try fixture.insertUpload("a", holder: node)
        // While the transaction is running, the last use of the blob ends.
        let change = try {
            let blob = try store(content(1000), in: "a", by: node)
            return try withExtendedLifetime(blob) { try #require(node.ledger.change(of: "a")) }
        }()
        if ending == .committed {
            try fixture.run("SELECT onward.put_pieces($1, $2, $3, $4, $5, $6)", [.text("a")] + change.parameters)
        }
        if ending == .rejected {
            node.ledger.rejected(change)
        } else {
            node.ledger.outcomeBecameUnknown(of: change)
        }
        #expect(objects.count == 1)
        // The first transaction that could record the object as garbage fails.
        try fixture.run(
            """
            CREATE FUNCTION onward.fail() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'test' USING ERRCODE = '53100'; END $$
            """)
        try fixture.run("CREATE TRIGGER fail BEFORE UPDATE ON onward.node EXECUTE FUNCTION onward.fail()")
        #expect(throws: StoreError.insufficientSpace(nil)) { try node.catalog.commit(.probe) }
        #expect(try fixture.count("onward.garbage") == 0)
        try fixture.run("DROP FUNCTION onward.fail CASCADE")
        try node.catalog.commit(.probe)
        let isNeeded = ending == .committed
        #expect(try fixture.count("onward.garbage") == (isNeeded ? 0 : 1))
        #expect(try fixture.collector().collect().garbage == (isNeeded ? 0 : 1))
        #expect(try objects == fixture.namedObjects() && objects.count == (isNeeded ? 1 : 0))
        if isNeeded { #expect(try fixture.node().area.open("a").readAll() == content(1000)) }
    }

    @Test("replaced bytes are deleted after the grace period, so that a download of them ends first")
    func garbage() throws {
        let node = try fixture.node(Self.small)
        let name = try #require(PublishedName(path: "f"))
        let first = try store(content(30_000), in: "1", by: node)
        try node.publish("1", as: name)
        let download = try node.area.openPublished(name)
        let second = try store(content(9000, seed: 2), in: "2", by: node)
        try node.publish("2", as: name, replacing: first.attributes().entityTag.opaque)
        let collector = fixture.collector { $0.gracePeriod = .seconds(3600) }
        #expect(try collector.collect() == PieceCollector.Report())
        #expect(try download.file.readAll() == content(30_000))
        #expect(try fixture.collector().collect().garbage == 8)
        #expect(try objects == fixture.namedObjects())
        #expect(try fixture.count("onward.garbage") == 0)
        #expect(try node.area.openPublished(name).file.readAll() == content(9000, seed: 2))
        withExtendedLifetime(second) {}
    }

    @Test("garbage that cannot be deleted now is deleted later")
    func failure() throws {
        let node = try fixture.node(Self.small)
        try fixture.insertUpload("a", holder: node)
        let blob = try store(content(20_000), in: "a", by: node)
        try fixture.record("a", offset: 20_000, by: node)
        withExtendedLifetime(blob) {}
        try fixture.endUpload("a")
        try node.area.remove("a")
        fixture.objects.setFault { operation in
            if case .delete = operation { .loseResponse } else { nil }
        }
        #expect(throws: StoreError.self) { try fixture.collector { $0.batchSize = 1000 }.collect() }
        fixture.objects.setFault { _ in nil }
        #expect(try fixture.count("onward.garbage") == 5)
        // Another node does not repeat this at once.
        #expect(try fixture.collector().collect().garbage == 0)
        try fixture.run("UPDATE onward.garbage SET claimed_until = clock_timestamp()")
        #expect(try fixture.collector().collect().garbage == 5)
        #expect(objects.isEmpty)
    }

    @Test("the pieces of uploads whose node ended before it removed them become garbage")
    func pieces() throws {
        let node = try fixture.node(Self.small)
        for blob in ["a", "b", "c", "d", "e"] {
            try fixture.insertUpload(blob, holder: node)
            let opened = try store(content(5000), in: blob, by: node)
            try fixture.record(blob, offset: 5000, by: node)
            withExtendedLifetime(opened) {}
        }
        let name = try #require(PublishedName(path: "f"))
        try node.publish("e", as: name)
        for blob in ["b", "d", "e"] { try fixture.endUpload(blob) }
        #expect(try fixture.collector().collect().garbage == 4)
        #expect(try fixture.count("onward.piece") == 6)
        #expect(try objects == fixture.namedObjects())
    }

    /// The event after which nothing needs the bytes of a blob any more.
    enum End: CaseIterable { case removal, replacement, upload, retained }

    @Test(
        "if nothing needs a blob with many pieces, one transaction removes the last of them, and a collector the others",
        arguments: End.allCases)
    func manyPieces(_ end: End) throws {
        let (node, name) = (try fixture.node(), try #require(PublishedName(path: "f")))
        let count = ClusterSQL.maxDropped + 2
        // A storage that has no owner would need the objects.
        try fixture.collector().requireOwnStorage()
        try fixture.insertUpload("a", holder: node)
        try fixture.insertPieces("a", count, of: 10, by: node)
        var tag = ""
        if end == .removal || end == .replacement { tag = try node.publish("a", as: name).entityTag.opaque }
        try fixture.endUpload("a")
        if end == .retained {
            try fixture.run("SELECT onward.retain('k', 'a', '', $1)", [.integer(Int64(count * 10))])
        }
        let collector = fixture.collector { $0.gracePeriod = .seconds(3600) }
        if end != .upload {
            try node.area.remove("a")
            _ = try collector.collect()
            #expect(try fixture.count("onward.piece") == count)
        }
        switch end {
        case .removal: try node.area.removePublished(name, tagged: tag)
        case .replacement:
            let blob = try store(content(10), in: "b", by: node)
            try node.publish("b", as: name, replacing: tag)
            withExtendedLifetime(blob) {}
        case .upload: try node.area.remove("a")
        case .retained:
            try fixture.run(ClusterSQL.removeRetained, [.text("k")])
            try node.area.remove("a")
        }
        // The pieces follow each other from byte 0 on, as always.
        #expect(try fixture.pieceSizes("a") == [10, 10])
        #expect(try fixture.run("SELECT onward.end_of_pieces('a')").integer(0, 0) == 20)
        _ = try collector.collect()
        #expect(try fixture.pieceSizes("a").isEmpty)
        #expect(try fixture.count("onward.garbage") == count)
        if end == .replacement { #expect(try node.area.openPublished(name).file.readAll() == content(10)) }
    }

    @Test("one transaction removes only a part of a blob whose bytes are in many rows, and a collector the others")
    func manyBytes() throws {
        let node = try fixture.node()
        try fixture.collector().requireOwnStorage()
        try fixture.insertUpload("a", holder: node)
        try fixture.run(
            """
            INSERT INTO onward.piece (blob, start, size, data)
            SELECT 'a', n * 65536, 65536, convert_to(repeat('x', 65536), 'UTF8') FROM generate_series(0, 519) AS n
            """)
        try fixture.endUpload("a")
        try node.area.remove("a")
        // 32 MiB were removed.
        #expect(try fixture.pieceSizes("a") == Array(repeating: 65536, count: 8))
        #expect(try fixture.run("SELECT onward.end_of_pieces('a')").integer(0, 0) == 8 * 65536)
        _ = try fixture.collector().collect()
        #expect(try fixture.pieceSizes("a").isEmpty)
    }

    @Test("a blob whose pieces cannot be removed does not stop the search for others, and is found again")
    func failingBlob() throws {
        let node = try fixture.node()
        // A storage that has no owner would need the objects.
        try fixture.collector().requireOwnStorage()
        for blob in ["a", "b", "c", "d"] {
            try fixture.insertUpload(blob, holder: node)
            try fixture.insertPieces(blob, 2, of: 10, by: node)
            try fixture.endUpload(blob)
        }
        try fixture.run(
            """
            CREATE FUNCTION onward.fail() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE EXCEPTION 'test' USING ERRCODE = '53100'; END $$
            """)
        try fixture.run(
            """
            CREATE TRIGGER fail BEFORE DELETE ON onward.piece
            FOR EACH ROW WHEN (OLD.blob = 'b') EXECUTE FUNCTION onward.fail()
            """)
        let collector = fixture.collector { $0.searchInterval = .seconds(86_400) }
        #expect(throws: StoreError.self) { try collector.collect() }
        _ = try collector.collect()
        #expect(try fixture.run("SELECT DISTINCT blob FROM onward.piece").text(0, 0) == "b")
        #expect(try fixture.count("onward.piece") == 2)
        try fixture.run("DROP FUNCTION onward.fail CASCADE")
        try fixture.run("UPDATE onward.collection SET due = clock_timestamp()")
        _ = try collector.collect()
        #expect(try fixture.count("onward.piece") == 0)
    }

    @Test("a collector removes a blob with any number of pieces")
    func removalOfManyPieces() throws {
        let (node, count) = (try fixture.node(), PostgreSQLCluster.isRequired ? 1_000_000 : 300_000)
        // A storage that has no owner would need the objects.
        try fixture.collector().requireOwnStorage()
        try fixture.insertUpload("a", holder: node)
        try fixture.insertPieces("a", count, of: 10, by: node)
        try fixture.endUpload("a")
        _ = try fixture.collector { $0.gracePeriod = .seconds(3600) }.collect()
        #expect(try fixture.count("onward.piece") == 0)
        #expect(try fixture.count("onward.garbage") == count)
    }

    @Test("no collector deletes objects of another database with the same storage")
    func foreignObjects() throws {
        let other = try AreaFixture()
        let node = try fixture.node(Self.small)
        let blob = try store(content(20_000), in: "a", by: node)
        try fixture.collector().requireOwnStorage()
        try fixture.collector().requireOwnStorage()
        let foreign = PieceCollector(database: other.database, objects: fixture.objects)
        #expect(
            throws: StoreError.foreignData(
                "another database uses the bucket with the same prefix; give each database a prefix of its own in --blobs"
            )
        ) {
            try foreign.collect()
        }
        #expect(objects.count == 5)
        withExtendedLifetime(blob) {}
    }

    /// Another database with the rows that identify this one, as in a restored dump.
    private func copyOfDatabase() throws -> AreaFixture {
        let copy = try AreaFixture()
        let identity = try fixture.run("SELECT identity FROM onward.identity").text(0, 0) ?? ""
        try copy.run("UPDATE onward.identity SET identity = $1", [.text(identity)])
        try copy.run("DELETE FROM onward.mark")
        let marks = try fixture.run("SELECT number, mark FROM onward.mark")
        for row in 0..<marks.count {
            try copy.run("INSERT INTO onward.mark VALUES ($1, $2)", [marks[row, 0], marks[row, 1]])
        }
        return copy
    }

    private func collector(of copy: AreaFixture) -> PieceCollector {
        PieceCollector(database: copy.database, objects: fixture.objects, settings: fixture.collectorSettings())
    }

    @Test(
        "servers of a copy of the database delete and store nothing after those of the original have changed the mark")
    func copies() throws {
        let node = try fixture.node(Self.small)
        try fixture.collector().requireOwnStorage()
        let copy = try copyOfDatabase()
        let server = collector(of: copy)
        #expect(throws: Never.self) { try server.requireOwnStorageOnce() }
        let blob = try store(content(20_000), in: "a", by: node)
        #expect(try fixture.collector().collect() == PieceCollector.Report())
        let refusal = #expect(throws: StoreError.self) { try server.collect() }
        #expect(refusal?.code == "foreign-data" && refusal.map { "\($0)" }?.contains("copy of this database") == true)
        for server in [server, collector(of: copy)] {
            #expect(throws: StoreError.self) { try server.requireOwnStorageOnce() }
        }
        #expect(objects.count == 5)
        // Only a check, which changes nothing, accepts the storage.
        #expect(throws: Never.self) { try collector(of: copy).requireNoOtherOwner() }
        // The original continues.
        for _ in 1...3 { #expect(try fixture.collector().collect() == PieceCollector.Report()) }
        withExtendedLifetime(blob) {}
    }

    @Test("a copy of the database takes over the storage after an operator has deleted the object of the owner")
    func restoredCopies() throws {
        try fixture.collector().requireOwnStorage()
        let copy = try copyOfDatabase()
        let node = try fixture.node(Self.small)
        let blob = try store(content(20_000), in: "a", by: node)
        _ = try fixture.collector().collect()
        // Of the objects that the copy names, some can have been deleted since it was made.
        let server = try copy.node(Self.small)
        for name in ["b", "c"] {
            try copy.insertUpload(name, holder: server)
            try copy.run(
                "INSERT INTO onward.piece (blob, start, size, object) VALUES ($1, 0, 1, 'data/' || $1 || '/1-1')",
                [.text(name)])
        }
        try fixture.objects.put("data/c/1-1", [1])
        #expect(throws: StoreError.self) { try collector(of: copy).collect() }
        try fixture.objects.delete([PieceCollector.identityKey])
        #expect(try collector(of: copy).collect().orphans == 5)
        #expect(objects == ["data/c/1-1"])
        let refusal = #expect(throws: StoreError.self) { try fixture.collector().collect() }
        #expect(refusal?.code == "foreign-data")
        withExtendedLifetime(blob) {}
    }

    @Test(
        "an interruption before or after a new mark is stored does not lock the servers out", arguments: [false, true])
    func interruptedRenewal(_ isStored: Bool) throws {
        try fixture.collector().requireOwnStorage()
        fixture.objects.setFault { operation in
            guard case .put(PieceCollector.identityKey, _) = operation else { return nil }
            return isStored ? .loseResponse : .fail(.unavailable("test"))
        }
        for _ in 1...3 { #expect(throws: StoreError.self) { try fixture.collector().collect() } }
        fixture.objects.setFault { _ in nil }
        let before = fixture.objects.contents[PieceCollector.identityKey]
        #expect(throws: Never.self) { try fixture.collector().collect() }
        #expect(fixture.objects.contents[PieceCollector.identityKey] != before)
    }

    @Test("a server deletes nothing before it has stored a mark, and confirmed it")
    func confirmation() throws {
        let node = try fixture.node(Self.small)
        let blob = try store(content(1000), in: "a", by: node)
        try fixture.end(node)
        for (observation, confirmation) in [(Int64.max, 0), (0, Int64.max)] {
            let collector = fixture.collector {
                $0.renewal = .init(observation: observation, confirmation: confirmation)
            }
            for _ in 1...3 { #expect(try collector.collect() == PieceCollector.Report()) }
        }
        #expect(objects.count == 1)
        #expect(try fixture.collector().collect().orphans == 1)
        withExtendedLifetime(blob) {}
    }

    @Test("if servers of two databases use an empty storage at the same time, those of one database refuse it")
    func claims() throws {
        let other = try AreaFixture()
        let (first, second) = (fixture.collector(), PieceCollector(database: other.database, objects: fixture.objects))
        // The second database claims the storage after the first one has found no owner, and before it claims it.
        let claims = Counter()
        fixture.objects.setFault { operation in
            guard case .put(PieceCollector.identityKey, _) = operation, claims.next() == 1 else { return nil }
            #expect(throws: Never.self) { try second.requireOwnStorageOnce() }
            return nil
        }
        #expect(throws: StoreError.self) { try first.requireOwnStorageOnce() }
        #expect(throws: Never.self) { try second.requireOwnStorage() }
    }

    @Test("a storage without an owner is claimed only if it has the objects of the database")
    func missingObjects() throws {
        let node = try fixture.node(Self.small)
        try fixture.insertUpload("a", holder: node)
        let blob = try store(content(1000), in: "a", by: node)
        try fixture.record("a", offset: 1000, by: node)
        withExtendedLifetime(blob) {}
        // A server with a wrong prefix finds no objects, and one of a restored backup finds copies of them.
        let other = MemoryObjectStore()
        let collector = PieceCollector(database: fixture.database, objects: other)
        let refusal = #expect(throws: StoreError.self) { try collector.requireOwnStorageOnce() }
        #expect(refusal?.code == "foreign-data" && other.contents.isEmpty)
        for key in objects { try other.put(key, fixture.objects.contents[key] ?? []) }
        #expect(throws: Never.self) { try collector.requireOwnStorageOnce() }
    }

    @Test("a storage that creates the bucket with its first object is claimed")
    func missingBucket() throws {
        let stored = Counter()
        fixture.objects.setFault { operation in
            if case .put = operation { _ = stored.next() }
            guard case .get = operation, stored.value == 0 else { return nil }
            return .fail(.refused(status: 404, code: "NoSuchBucket", message: ""))
        }
        #expect(throws: Never.self) { try fixture.collector().requireOwnStorageOnce() }
    }

    /// Objects of a storage that replaces an object although the request has `If-None-Match`.
    private struct UnconditionalStore: ForwardingObjectStore {
        let objects: MemoryObjectStore

        func create(_ key: String, _ content: [UInt8], until deadline: Int64) throws(ObjectError) -> Bool {
            try objects.put(key, content, until: deadline)
            return true
        }
    }

    @Test("a storage that ignores conditions belongs to one database, however many use it first at the same time")
    func unconditionalClaims() throws {
        let other = try AreaFixture()
        let store = UnconditionalStore(objects: fixture.objects)
        var settings = PieceCollector.Settings()
        settings.renewal.confirmation = 300_000_000
        let databases = [fixture.database, fixture.database, other.database]
        let collectors = databases.map { PieceCollector(database: $0, objects: store, settings: settings) }
        // The second database stores its candidacy after the first one has found no owner, and before it stores its own.
        let claims = Counter()
        fixture.objects.setFault { operation in
            guard case .put(PieceCollector.identityKey, _) = operation, claims.next() == 1 else { return nil }
            #expect(throws: StoreError.self) { try collectors[2].requireOwnStorageOnce() }
            return nil
        }
        #expect(throws: StoreError.self) { try collectors[0].requireOwnStorageOnce() }
        // Another server of the same database does not rely on the candidacy either.
        #expect(throws: StoreError.self) { try collectors[1].requireOwnStorageOnce() }
        // A check changes nothing.
        #expect(throws: Never.self) { try collectors[0].requireNoOtherOwner() }
        #expect(throws: Never.self) {
            try collectors[0].requireOwnStorageOnce(until: SystemClock.deadline(in: .seconds(60)))
        }
        #expect(throws: Never.self) { try collectors[1].requireOwnStorageOnce() }
        let refusal = #expect(throws: StoreError.self) { try collectors[2].requireOwnStorageOnce() }
        #expect(refusal?.code == "foreign-data")
        #expect(claims.value == 3)
    }

    @Test("a server whose storage has got another owner stores nothing more")
    func lostStorage() throws {
        let node = try fixture.node(Self.small)
        let blob = try store(content(1000), in: "a", by: node)
        try fixture.objects.put(PieceCollector.identityKey, Array("another".utf8))
        #expect(throws: StoreError.self) { try node.area.collector.collect() }
        #expect(throws: Errno.accessDenied) { _ = try store(content(1000), in: "b", by: node) }
        withExtendedLifetime(blob) {}
    }

    @Test("collectors run while uploads are stored and recorded, and no recorded byte is lost", arguments: [1, 2, 3])
    func concurrency(_ seed: UInt64) throws {
        let isDone = Monitor(false)
        let collecting = try WorkerThread(name: "collect") { [fixture] in
            let collector = fixture.collector { $0.batchSize = 20 }
            while !isDone.withLock({ $0 }) { _ = try? collector.collect() }
        }
        var generator = SeededGenerator(seed: seed)
        var expected: [String: [UInt8]] = [:]
        for round in 0..<30 {
            let node = try fixture.node(Self.small)
            let blob = "\(round)"
            try fixture.insertUpload(blob, holder: node)
            let opened = try node.area.create(blob)
            var bytes: [UInt8] = []
            var ends = false
            for step in 0..<Int.random(in: 1...4, using: &generator) {
                let part = content(Int.random(in: 1...9000, using: &generator), seed: UInt64(round * 10 + step))
                try opened.append(part)
                try opened.synchronize(including: .name)
                if generator.oneIn(8) {
                    ends = true
                    try fixture.end(node)
                }
                do {
                    try fixture.record(blob, offset: Int64(bytes.count + part.count), by: node)
                    bytes += part
                } catch {
                    if !ends { throw error }
                    break
                }
            }
            if generator.oneIn(3) { try fixture.end(node) }
            expected[blob] = bytes
        }
        isDone.withLock { $0 = true }
        collecting.join()
        let reader = try fixture.node(Self.small)
        for (blob, bytes) in expected { #expect(try reader.area.open(blob).readAll() == bytes) }
    }
}
