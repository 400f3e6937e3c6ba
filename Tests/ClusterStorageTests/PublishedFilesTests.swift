import HTTPSemantics
import ObjectStorage
import PostgreSQL
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import ClusterStorage

/// Tests published files whose names are in a database.
@Suite(.serialized, .enabled(if: PostgreSQLCluster.isInstalled, Comment(rawValue: PostgreSQLCluster.requirement)))
struct PublishedFilesTests {
    private static let small = PieceLimits(maxSize: 4096, maxInlineSize: 256, minMemory: 128, memory: 1 << 20)

    private let fixture: AreaFixture
    private let node: AreaFixture.Node

    init() throws {
        fixture = try AreaFixture()
        node = try fixture.node(Self.small)
    }

    private func name(_ path: String) throws -> PublishedName { try #require(PublishedName(path: path)) }

    /// An unfinished upload of the node with the blob "b", whose bytes are recorded.
    private func recordedUpload() throws -> any Blob {
        try fixture.insertUpload("b", holder: node)
        let blob = try node.area.create("b")
        try blob.append(content(5000))
        try blob.synchronize(including: .name)
        try fixture.record("b", offset: 5000, by: node)
        return blob
    }

    /// Publishes bytes of a plain upload.
    @discardableResult
    private func publish(
        _ bytes: [UInt8], as path: String, blob: String, replacing tag: String? = nil, on other: AreaFixture.Node? = nil
    ) throws -> PublishedFile.Attributes {
        let node = other ?? node
        let opened = try node.area.create(blob)
        defer { withExtendedLifetime(opened) {} }
        try opened.append(bytes)
        try node.area.makeDirectories(for: name(path), durably: true)
        try opened.setModified(1_000_000_000_000_000_007)
        return try node.publish(blob, as: name(path), replacing: tag)
    }

    private func read(_ path: String) throws -> [UInt8] { try node.area.openPublished(name(path)).file.readAll() }

    @Test("a published file has the same bytes and attributes on every node", arguments: [0, 100, 4096, 50_000])
    func publication(_ count: Int) throws {
        let attributes = try publish(content(count), as: "a/b/c", blob: "1")
        let other = try fixture.node(Self.small)
        let found = try other.area.openPublished(name("a/b/c"))
        #expect(found.identity == "1")
        #expect(found.file.attributes == attributes)
        #expect(attributes.size == count)
        #expect(attributes.modifiedNanoseconds == 7)
        #expect(try found.file.readAll(blockSize: 999) == content(count))
        #expect(try other.area.isPublished(name("a/b/c")))
        #expect(try !other.area.isPublished(name("a/b")))
        #expect(try !other.area.isPublished(name("a/x")))
        #expect(node.ledger.change(of: "1") == nil)
    }

    @Test("the fields of a file are those of the row that was opened", arguments: [0, 50_000])
    func fields(_ count: Int) throws {
        let blob = try node.area.create("1")
        defer { withExtendedLifetime(blob) {} }
        try blob.append(content(count))
        try blob.synchronize(including: .attributes)
        let attributes = try blob.attributes()
        let record = FileRecord(
            name: "f", principal: "alice", size: attributes.size, fields: ["Content-Type": "text/x"])
        try node.catalog.commit(
            .naming(.recordFile(record, ending: nil), .file(name("f"), attributes, blob: "1", replaced: nil)))
        let file = try fixture.node(Self.small).area.openPublished(name("f")).file
        #expect(file.fields["Content-Type"] == "text/x")
        #expect(try file.readAll() == content(count))
    }

    @Test("a file with more pieces than a list contains can be read from any byte on")
    func listsOfPieces() throws {
        try publish(content(50_000), as: "f", blob: "1")
        var limits = Self.small
        limits.maxListed = 3
        // The area is closed when its node is released: the file can still be read.
        let file = try fixture.node(limits).area.openPublished(name("f")).file
        #expect(try file.readAll(blockSize: 999) == content(50_000))
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 20_000, alignment: 1)
        defer { bytes.deallocate() }
        for offset in [49_999, 0, 4095, 4096, 30_000, 12_288, 12_287, 50_000] {
            let count = try file.read(into: bytes, at: Int64(offset))
            #expect(bytes[..<count].elementsEqual(content(50_000)[offset...].prefix(20_000)), "from \(offset)")
        }
        // If a file is removed while it is read, reading its remaining bytes fails, and does not report the end of the
        // file.
        let removed = try fixture.node(limits).area.openPublished(name("f")).file
        try node.area.removePublished(name("f"), tagged: removed.attributes.entityTag.opaque)
        #expect(throws: StoreError.io(.inputOutput, during: "read a published file")) { try removed.readAll() }
    }

    @Test("names of files, names of directories and names below files cause different errors")
    func kinds() throws {
        try publish([1], as: "a/b", blob: "1")
        func error(_ path: String) throws -> StoreError? {
            let name = try name(path)
            do throws(StoreError) { _ = try node.area.openPublished(name) } catch { return error }
            return nil
        }
        #expect(try error("a/b") == nil)
        #expect(try error("a") == .targetIsDirectory)
        #expect(try error("a/c") == .notFound)
        #expect(try error("c/d/e") == .notFound)
        #expect(try error("a/b/c") == .parentIsFile)
        #expect(try error("a/b/c/d") == .parentIsFile)
        #expect(throws: StoreError.parentIsFile) { try publish([1], as: "a/b/c", blob: "2") }
        #expect(throws: StoreError.targetIsDirectory) { try publish([1], as: "a", blob: "3") }
        #expect(throws: StoreError.preconditionFailed) { try publish([1], as: "a/b", blob: "4") }
        #expect(throws: StoreError.notFound) { try node.area.removePublished(name("a/c"), tagged: "x") }
        #expect(throws: StoreError.parentIsFile) { try node.area.removePublished(name("a/b/c"), tagged: "x") }
        #expect(throws: StoreError.targetIsDirectory) { try node.area.removePublished(name("a"), tagged: "x") }
        #expect(throws: StoreError.preconditionFailed) { try node.area.removePublished(name("a/b"), tagged: "x") }
        #expect(try fixture.count("onward.piece") == 1)
        #expect(throws: StoreError.notFound) {
            _ = try node.area.openDirectory(#require(PublishedName.Directory(segments: ["b"])))
        }
        #expect(throws: StoreError.parentIsFile) {
            _ = try node.area.openDirectory(#require(PublishedName.Directory(segments: ["a", "b", "c"])))
        }
    }

    @Test("a file is replaced only if it has the expected entity tag")
    func replacement() throws {
        let first = try publish(content(10_000), as: "f", blob: "1")
        #expect(throws: StoreError.preconditionFailed) {
            try publish([2], as: "f", blob: "2", replacing: "another")
        }
        #expect(throws: StoreError.preconditionFailed) {
            try publish([2], as: "g", blob: "3", replacing: first.entityTag.opaque)
        }
        let second = try publish(content(9000, seed: 2), as: "f", blob: "4", replacing: first.entityTag.opaque)
        #expect(second.entityTag != first.entityTag)
        #expect(try read("f") == content(9000, seed: 2))
        #expect(try fixture.count("onward.garbage") == 3)
        try node.area.removePublished(name("f"), tagged: second.entityTag.opaque)
        #expect(throws: StoreError.notFound) { try read("f") }
        #expect(try fixture.count("onward.piece") == 0)
        #expect(try fixture.count("onward.garbage") == 6)
    }

    @Test("a path that is too long for an index of the database is refused before its bytes arrive")
    func longPath() throws {
        var generator = SeededGenerator(seed: 1)
        let segments = (0..<12).map { _ in
            String((0..<240).map { _ in Character(UnicodeScalar(UInt8.random(in: 33...126, using: &generator))) })
                .replacing("/", with: "_")
        }
        // The longest accepted path can be stored, whatever it contains.
        let longest = try name(String(segments.joined(separator: "/").prefix(2600)))
        #expect(throws: StoreError.notFound) { try node.area.openPublished(longest) }
        let blob = try node.area.create("1")
        try blob.append([1])
        try node.area.makeDirectories(for: longest, durably: true)
        try node.publish("1", as: longest)
        #expect(try node.area.openPublished(longest).file.readAll() == [1])
        let long = try name(longest.path + "x")
        #expect(throws: StoreError.pathTooLong(limit: 2600)) { try node.area.requirePossible(long) }
        #expect(throws: StoreError.notFound) { try node.area.openPublished(long) }
    }

    @Test("a node stores no object in the storage of another database")
    func foreignStorage() throws {
        try fixture.objects.put(PieceCollector.identityKey, Array("another database".utf8))
        let blob = try node.area.create("b")
        #expect(throws: Errno.accessDenied) {
            try blob.append(content(50_000))
            try blob.synchronize(including: .name)
        }
        #expect(Array(fixture.objects.contents.keys) == [PieceCollector.identityKey])
        try fixture.objects.delete([PieceCollector.identityKey])
        try publish(content(50_000), as: "f", blob: "c")
        #expect(try read("f") == content(50_000))
    }

    @Test("the transaction of an ended session is ended, so that it does not keep its locks")
    func lateTransaction() throws {
        let session = try node.area.node.currentSession()
        let result = Monitor<DatabaseError?>(nil)
        let database = fixture.database
        let late = try WorkerThread(name: "late") {
            do throws(DatabaseError) {
                _ = try database.transaction([
                    DatabaseStatement(ClusterSQL.beginBatch, [.integer(session), .integer(0)]),
                    DatabaseStatement("SELECT pg_sleep(9)"),
                ])
            } catch { result.withLock { $0 = error } }
        }
        let activity = "pg_stat_activity WHERE application_name = 'onward \(session)'"
        #expect(try pollUntil(within: .seconds(8)) { try fixture.count(activity) == 1 ? true : nil } == true)
        try fixture.run(ClusterSQL.endLateTransactions)
        #expect(try fixture.count(activity) == 1)
        try fixture.run("UPDATE onward.node SET alive_until = '-infinity' WHERE session = $1", [.integer(session)])
        try fixture.run(ClusterSQL.endLateTransactions)
        late.join()
        #expect(result.withLock { $0 }?.isUnavailable == true)
        // The server process of the connection ends shortly after the client has lost the connection.
        #expect(try pollUntil(within: .seconds(30)) { try fixture.count(activity) == 0 ? true : nil } == true)
    }

    @Test("of several nodes that publish under one name at the same time, exactly one succeeds")
    func race() throws {
        let nodes = try (0..<3).map { _ in try fixture.node(Self.small) }
        for round in 0..<20 {
            let published = Monitor<[Int]>([])
            let path = "race\(round)"
            let threads = try nodes.enumerated().map { index, node in
                try WorkerThread(name: "publish") { () -> Void in
                    if (try? publish([UInt8(index)], as: path, blob: "\(round)-\(index)", on: node)) != nil {
                        published.withLock { $0.append(index) }
                    }
                }
            }
            for thread in threads { thread.join() }
            let winners = published.withLock { $0 }
            #expect(winners.count == 1)
            #expect(try read(path) == winners.map { UInt8($0) })
        }
        #expect(try fixture.count("onward.piece") == 20)
    }

    @Test(
        "every change of names and bytes is a batch, so a change that arrives after the outcome was resolved has no effect"
    )
    func batches() throws {
        var resolutions: Int64 = 0
        func requireBatch(_ change: () throws -> Void) throws {
            // The next batch with the number that the node knows is rejected, and the node resolves the outcomes once more.
            try fixture.run(ClusterSQL.resolveBatches, [.integer(node.session)])
            try change()
            resolutions += 2
            let rows = try fixture.run("SELECT batch FROM onward.node WHERE session = $1", [.integer(node.session)])
            #expect(rows.integer(0, 0) == resolutions)
        }
        let file = try publish([1], as: "d/f", blob: "1")
        try requireBatch { try node.area.makeDirectories(for: name("e/f"), durably: true) }
        let blob = try node.area.create("2")
        try blob.append([2])
        try requireBatch { try node.publish("2", as: name("g")) }
        try requireBatch { try node.area.removePublished(name("d/f"), tagged: file.entityTag.opaque) }
        try requireBatch { try node.area.remove("2") }
        withExtendedLifetime(blob) {}
    }

    @Test("a directory has each of its names once, in the order of their bytes, from any name and prefix on")
    func listing() throws {
        let names = (0..<1203).map { "n\($0 * 7919 % 10_007)" } + ["é", "e\u{301}", "a", "b"]
        try fixture.run(
            """
            INSERT INTO onward.name (parent, name, is_directory, size, modified)
            SELECT 'd', n, true, 0, 5000000000 FROM unnest($1) AS n
            """, [.texts(names)])
        try publish([1, 2, 3], as: "d/file", blob: "1")
        let directory = try #require(PublishedName.Directory(segments: ["d"]))
        let sorted = (names + ["file"]).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
        func list(after cursor: String? = nil, prefix: String = "", limit: Int = .max) throws -> [String] {
            let opened = try node.area.openDirectory(directory)
            if cursor != nil || !prefix.isEmpty { #expect(opened.seek(after: cursor, prefix: prefix)) }
            var names: [String] = []
            while names.count < limit, let name = try opened.nextName({ String(decoding: $0, as: UTF8.self) }) {
                names.append(name)
            }
            return names
        }
        func equal(_ left: some Sequence<String>, _ right: some Sequence<String>) -> Bool {
            left.map { Array($0.utf8) } == right.map { Array($0.utf8) }
        }
        #expect(equal(try list(), sorted))
        #expect(equal(try list(after: sorted[700]), sorted[701...]))
        #expect(equal(try list(after: "n5"), sorted.filter { "n5".utf8.lexicographicallyPrecedes($0.utf8) }))
        #expect(equal(try list(prefix: "n5").prefix { $0.hasPrefix("n5") }, sorted.filter { $0.hasPrefix("n5") }))
        #expect(equal(try list(after: "n5", prefix: "n"), try list(after: "n5")))
        #expect(equal(try list(after: "e\u{301}", prefix: "e\u{301}", limit: 1), ["file"]))
        let opened = try node.area.openDirectory(directory)
        for name in sorted { #expect(try opened.entry(name)?.name.utf8.elementsEqual(name.utf8) ?? false) }
        #expect(try opened.entry("missing") == nil)
        #expect(
            try opened.entry("file")
                == PublishedEntry(name: "file", isDirectory: false, size: 3, modifiedSeconds: 1_000_000_000))
        #expect(try opened.entry("é") != opened.entry("a"))
    }

    @Test("retained bytes remain after their upload has ended")
    func retention() throws {
        _ = try recordedUpload()
        try node.catalog.commit(.naming(.probe, .retained(key: "key", description: [1], blob: "b", size: 5000)))
        try fixture.endUpload("b")
        try node.area.remove("b")
        #expect(try node.area.retainedCount() == 1)
        #expect(try node.area.open("b").readAll() == content(5000))
    }

    @Test("an object storage or a database that does not respond causes a temporary error")
    func unavailability() throws {
        fixture.objects.setFault { _ in .fail(.unavailable("test")) }
        #expect(throws: Errno.timedOut) { try node.area.probe() }
        // A thread stores the bytes, so the error can come from a write or from the publication.
        #expect(throws: (any Error).self) { try publish(content(5000), as: "f", blob: "1") }
        fixture.objects.setFault { _ in nil }
        try node.area.probe()
        fixture.database.close()
        #expect(throws: StoreError.self) { try read("f") }
        #expect(throws: Errno.timedOut) { try node.area.open("b") }
    }
}
