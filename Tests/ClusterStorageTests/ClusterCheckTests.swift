import ObjectStorage
import PostgreSQL
import SystemCalls
import TestSupport
import Testing
import UploadStorage

@testable import ClusterStorage

/// Tests what a check reports while servers store, replace and delete objects between its steps.
@Suite(.serialized, .enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct ClusterCheckTests {
    /// Objects in memory. A function of the test is called after each list and each read.
    private final class ObservedObjects: ForwardingObjectStore {
        let objects: MemoryObjectStore
        let after = Monitor<@Sendable (MemoryObjectStore.Operation) -> Void>({ _ in })

        init(_ objects: MemoryObjectStore) { self.objects = objects }

        func get(
            _ key: String, _ range: Range<Int64>, into buffer: UnsafeMutableRawBufferPointer, until deadline: Int64
        ) throws(ObjectError) -> Int {
            defer { after.withLock { $0 }(.get(key: key, range)) }
            return try objects.get(key, range, into: buffer)
        }

        func list(prefix: String, after key: String?, limit: Int) throws(ObjectError) -> [ObjectListing] {
            defer { after.withLock { $0 }(.list(prefix: prefix, after: key)) }
            return try objects.list(prefix: prefix, after: key, limit: limit)
        }
    }

    private let fixture: AreaFixture
    private let objects: ObservedObjects

    init() throws {
        fixture = try AreaFixture()
        objects = ObservedObjects(fixture.objects)
    }

    private func run(_ sql: String) throws { _ = try fixture.database.run(DatabaseStatement(sql)) }

    /// Publishes a file of 4 bytes in one object.
    private func publish(_ name: String) throws {
        try objects.put("data/\(name)/1-1", [1, 2, 3, 4])
        try run("INSERT INTO onward.piece (blob, start, size, object) VALUES ('\(name)', 0, 4, 'data/\(name)/1-1')")
        try run(
            """
            INSERT INTO onward.name (parent, name, is_directory, blob, size, modified, tag)
            VALUES ('', '\(name)', false, '\(name)', 4, 1, '\(name)')
            """)
    }

    private func remove(_ name: String) throws {
        try run("DELETE FROM onward.name WHERE name = '\(name)'")
        try run("DELETE FROM onward.piece WHERE blob = '\(name)'")
    }

    private func check(page: Int = 1000, removalTime: Duration = .zero) throws -> [String] {
        let limits = ClusterCheck.Limits(page: page, removalTime: removalTime)
        var findings: [String] = []
        let cluster = try ClusterInspection(fixture.database, objects)
        let summary = try ClusterCheck(cluster, limits).run { findings.append("\($0.kind.rawValue) \($0.path)") }
        #expect(summary.findings == findings.count)
        // The servers of these tests are fast, and not safe.
        #expect(findings.first == "setting-off fsync")
        return Array(findings.dropFirst())
    }

    @Test("pages are compared with the pieces between their objects, whatever their sizes are")
    func pages() throws {
        for name in ["a", "b", "c", "d", "e"] { try publish(name) }
        for page in [1, 2, 3, 5, 1000] { #expect(try check(page: page) == [], "\(page)") }
        try objects.delete(["data/a/1-1", "data/c/1-1", "data/e/1-1"])
        try objects.put("data/d/1-1", [1, 2, 3])
        try objects.put("data/bb/1-1", [1])
        for page in [1, 2, 3, 5, 1000] {
            let findings = try check(page: page).sorted()
            let lost = ["a", "c", "d", "e"].map { "file-unreadable files/\($0)" }
            #expect(findings == ["bytes-unknown data/bb/1-1"] + lost, "\(page)")
        }
    }

    @Test("an object that is stored and named after the list is not lost")
    func storedLater() throws {
        try publish("a")
        let isDone = Monitor(false)
        objects.after.withLock { after in
            after = { operation in
                guard case .list("data/", nil) = operation else { return }
                try? publish("later")
                isDone.withLock { $0 = true }
            }
        }
        #expect(try check() == [])
        #expect(isDone.withLock { $0 })
    }

    @Test("an object is not lost if its file is removed before the check reports it")
    func removedLater() throws {
        try publish("a")
        try objects.delete(["data/a/1-1"])
        #expect(try check() == ["file-unreadable files/a"])
        objects.after.withLock { after in
            after = { operation in if case .get("data/a/1-1", _) = operation { try? remove("a") } }
        }
        #expect(try check() == [])
    }

    @Test("an object without a row is reported only if its session has ended, and it exists afterwards")
    func sessions() throws {
        try objects.put("data/b/\(1)-1", [1])
        try run("INSERT INTO onward.node (session, name, alive_until) VALUES (1, 'test', 'infinity')")
        #expect(try check() == [])
        try run("UPDATE onward.node SET alive_until = clock_timestamp() - interval '20 seconds'")
        #expect(try check() == [])
        try run("UPDATE onward.node SET alive_until = clock_timestamp() - interval '2 minutes'")
        #expect(try check() == ["bytes-unknown data/b/1-1"])
        try run("DELETE FROM onward.node")
        #expect(try check() == ["bytes-unknown data/b/1-1"])
        try run("INSERT INTO onward.garbage (object) VALUES ('data/b/1-1')")
        #expect(try check() == [])
        try run("DELETE FROM onward.garbage")
        objects.after.withLock { [objects] after in
            after = { operation in
                if case .list("data/", nil) = operation { try? objects.delete(["data/b/1-1"]) }
            }
        }
        #expect(try check() == [])
    }

    @Test("pieces of an upload that has just ended are not reported")
    func removalTime() throws {
        try run("INSERT INTO onward.piece (blob, start, size, data) VALUES ('b', 0, 1, 'x')")
        #expect(try check() == ["bytes-unknown data/b"])
        let thread = try WorkerThread(name: "server") {
            SystemClock.pause(nanoseconds: 700_000_000)
            try? run("DELETE FROM onward.piece")
        }
        #expect(try check(removalTime: .seconds(60)) == [])
        thread.join()
    }
}
