import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// `scripts/backup` copies a data directory under load. In a server that uses the copy, no upload has an offset below
/// the offset that was reported before the copy began.
@Suite(
    "Backup", .blocking,
    .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "needs the program sqlite3"))
struct BackupTests {
    private static let script: String = {
        var path = #filePath
        for _ in 0..<5 { path = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }
        return path + "/scripts/backup"
    }()

    /// An upload that the load has created.
    private struct Upload: Sendable {
        var location: String
        var name: String
        var size: Int
        var begin: Int
        /// The largest reported offset.
        var offset: Int
        var isComplete = false

        var content: [UInt8] { BytePool.repeated(begin..<begin + size) }
    }

    /// The uploads of the load so far, by name.
    private typealias Ledger = Monitor<[String: Upload]>

    /// Creates uploads, appends to them, completes them, and replaces a file, until `continues` returns `false`.
    private func load(_ client: Int, port: UInt16, _ ledger: Ledger, while continues: () -> Bool) throws {
        func exchange(_ request: Request) throws -> Response { try RawConnection(port: port).exchange(request) }
        var history = SeededGenerator.part(client)
        func create(_ name: String, _ size: Int, first: Int) throws -> Upload {
            var upload = Upload(
                location: "", name: name, size: size, begin: Int.random(in: 0..<100_000, using: &history), offset: first
            )
            let created = try exchange(
                .creation(
                    .v8, "PUT", "/files/" + name, complete: false, length: size,
                    .bytes(Array(upload.content[..<first]))))
            guard created.status == 201, let location = created.location else {
                throw TestFailure("a creation answered by \(created)")
            }
            upload.location = location
            ledger.withLock { $0[name] = upload }
            return upload
        }
        // These ten uploads never end, and the load appends to them all the time.
        var growing = try (0..<10).map { try create("g\(client)-\($0)", 3_000_000, first: 0) }
        var number = 0
        while continues() {
            number += 1
            for _ in 0..<5 {
                let index = Int.random(in: growing.indices, using: &history)
                let start = growing[index].offset
                let more = try exchange(
                    .append(
                        .v8, growing[index].location, at: start, complete: false,
                        .bytes(Array(growing[index].content[start..<start + 500]))))
                guard more.status == 204 else { throw TestFailure("an append answered by \(more)") }
                growing[index].offset += 500
                ledger.withLock { $0[growing[index].name] = growing[index] }
            }
            let size = Int.random(in: 1...300_000, using: &history)
            let first = Int.random(in: 0...size, using: &history)
            var upload = try create("c\(client)-\(number)", size, first: first)
            if history.oneIn(3) { continue }
            let second = Int.random(in: first...size, using: &history)
            let middle = try exchange(
                .append(.v8, upload.location, at: first, complete: false, .bytes(Array(upload.content[first..<second])))
            )
            guard middle.status == 204 else { throw TestFailure("an append answered by \(middle)") }
            upload.offset = second
            ledger.withLock { $0[upload.name] = upload }
            if history.oneIn(4) { continue }
            let last = try exchange(
                .append(.v8, upload.location, at: second, complete: true, .bytes(Array(upload.content[second...]))))
            guard last.status == 201 else { throw TestFailure("a completion answered by \(last)") }
            upload.isComplete = true
            ledger.withLock { $0[upload.name] = upload }
            // This file is replaced all the time; each version of it repeats one byte.
            let shared = [UInt8](repeating: UInt8(number % 256), count: 200_000)
            _ = try exchange(Request("PUT", "/files/shared", [], .bytes(shared)))
        }
    }

    @Test(
        "OFF-09 OFF-10 OFF-15: in a copy made under load, files are complete, and unfinished uploads can continue"
    )
    func underLoad() throws {
        print("BackupTests: ONWARD_SEED=\(SeededGenerator.runSeed)")
        try withServer { server in
            let ledger = Ledger([:])
            let isOver = Monitor(false)
            let (port, root) = (server.port, server.root)
            let copy = server.directory.path + "/copy"
            let before = try ConcurrentClients.run(5) { client -> [String: Upload] in
                if client < 4 {
                    try load(client, port: port, ledger) { !isOver.withLock { $0 } }
                    return [:]
                }
                defer { isOver.withLock { $0 = true } }
                #expect(eventually { ledger.withLock { $0.count >= 90 } })
                let recorded = ledger.withLock { $0 }
                let backup = try ChildProcess(Self.script, [root, copy])
                #expect(try backup.awaitEnding(within: .seconds(120)) == .exited(0), "\(backup.errorOutput)")
                return recorded
            }
            try server.crash()
            try verify(copy, server, before: before[4], after: ledger.withLock { $0 })
        }
    }

    private func verify(
        _ copy: String, _ server: ServerProcess, before: [String: Upload], after: [String: Upload]
    ) throws {
        try FileManager.default.removeItem(atPath: server.root)
        try FileManager.default.moveItem(atPath: copy, toPath: server.root)
        try server.restart()
        var resumed = 0
        var gone = 0
        for name in server.publishedNames() where name != "shared" {
            #expect(server.published(name) == after[name]?.content, "\(name) is incomplete")
        }
        if let shared = server.published("shared") {
            #expect(shared.count == 200_000 && Set(shared).count == 1)
        }
        for (name, recorded) in before {
            let head = try server.exchange(.retrieval(.v8, recorded.location))
            if recorded.isComplete {
                // The upload was complete before the copy began.
                #expect(server.published(name) == recorded.content)
                #expect(head.status == 204 && head.complete == true, "\(head)")
                continue
            }
            if head.status != 204 {
                // The upload was completed while the copy was made, so its file is in the copy.
                #expect([404, 409, 410].contains(head.status), "\(head)")
                #expect(after[name]?.isComplete == true, "\(name) is gone: \(head)")
                #expect(server.published(name) == recorded.content)
                gone += 1
                continue
            }
            if head.complete == true {
                #expect(server.published(name) == recorded.content)
                continue
            }
            let offset = Int(try #require(head.offset))
            #expect(
                offset >= recorded.offset && offset <= recorded.size, "\(name): \(head), reported \(recorded.offset)")
            let last = try server.exchange(
                .append(.v8, recorded.location, at: offset, complete: true, .bytes(Array(recorded.content[offset...]))))
            #expect([200, 201, 204].contains(last.status), "\(last)")
            #expect(server.published(name) == recorded.content)
            resumed += 1
        }
        print("BackupTests: \(before.count) uploads before the copy, \(resumed) resumed, \(gone) gone")
        #expect(resumed > 0)
        #expect(try server.stop() == .exited(0))
        try OnwardRun(["check", "--root", server.root]).expectSuccess()
    }

    @Test(
        "a copy made by root belongs to the server's user, who can use it",
        .enabled(if: geteuid() == 0, "only root can change the owner of files"))
    func owners() throws {
        try withServer { server in
            #expect(try server.exchange(Request("PUT", "/files/entire", [], .bytes([1, 2, 3]))).status == 201)
            _ = try server.begin(.v8, "/files/begun", [1, 2, 3], length: 10)
            #expect(try server.stop() == .exited(0))
            let given = try ChildProcess("/bin/chown", ["-R", "65534:65533", server.root])
            #expect(try given.awaitEnding() == .exited(0))
            let copy = server.directory.path + "/copy"
            let backup = try ChildProcess(Self.script, [server.root, copy])
            #expect(try backup.awaitEnding() == .exited(0), "\(backup.errorOutput)")
            let names = try FileManager.default.subpathsOfDirectory(atPath: copy)
            #expect(Set(names).isSuperset(of: ["onward.sqlite", "uploads", "files", "files/entire"]))
            for path in [copy] + names.map({ copy + "/" + $0 }) {
                var status = stat()
                #expect(lstat(path, &status) == 0 && status.st_uid == 65534 && status.st_gid == 65533, "\(path)")
            }
        }
    }

    @Test("only readable data directories are copied, and not into an existing directory")
    func refusals() throws {
        let directory = try TemporaryDirectory()
        let nothing = try ChildProcess(Self.script, [directory.path, directory.path + "/copy"])
        #expect(try nothing.awaitEnding() == .exited(74))
        let incomplete = try ChildProcess(Self.script, [directory.path])
        #expect(try incomplete.awaitEnding() == .exited(64))
        _ = try directory.file("onward.sqlite", Array("not a database".utf8))
        let damaged = try ChildProcess(Self.script, [directory.path, directory.path + "/damaged"])
        #expect(try damaged.awaitEnding() == .exited(74), "\(damaged.errorOutput)")
        #expect(damaged.errorOutput.contains("onward.sqlite could not be copied"))
        try withServer { server in
            try FileManager.default.createDirectory(atPath: directory.path + "/old", withIntermediateDirectories: false)
            let over = try ChildProcess(Self.script, [server.root, directory.path + "/old"])
            #expect(try over.awaitEnding() == .exited(1))
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path + "/old").isEmpty)
        }
    }
}

extension OnwardRun {
    func expectSuccess(sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(ending == .exited(0), "\(output)", sourceLocation: sourceLocation)
    }
}
