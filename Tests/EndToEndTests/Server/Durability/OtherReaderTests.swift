import ConformanceKit
import Glibc
import SystemCalls
import TestSupport
import Testing

/// Other programs may read the catalog of a running server, as `scripts/backup` does, without any harm.
@Suite(
    "Other readers of the catalog", .blocking,
    .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "needs the program sqlite3"))
struct OtherReaderTests {
    private func create(_ name: String, _ server: ServerProcess) throws -> String {
        let created = try server.connect().exchange(
            .creation(.v8, "PUT", "/files/" + name, complete: false, length: 100, .bytes(Payload.bytes(60))))
        #expect(created.status == 201)
        return try #require(created.location)
    }

    private func expectKept(_ location: String, _ server: ServerProcess) throws {
        let state = try server.connect().exchange(.retrieval(.v8, location))
        #expect(state.status == 204 && state.value("Upload-Offset") == "60", "\(state)")
    }

    @Test("OFF-10: uploads reported before and after another program's read survive a kill of the server")
    func killed() throws {
        try withServer { server in
            let first = try create("a", server)
            for _ in 0..<2 {
                let reader = try ChildProcess(
                    "/usr/bin/sqlite3", [server.root + "/onward.sqlite", "SELECT count(*) FROM uploads"])
                #expect(try reader.awaitEnding() == .exited(0), "\(reader.errorOutput)")
                #expect(access(server.root + "/onward.sqlite-wal", F_OK) == 0)
            }
            let second = try create("b", server)
            let published = try server.connect().exchange(
                Request("PUT", "/files/c", [], .bytes(Payload.bytes(10))))
            #expect(published.status == 201)
            try server.crash()
            try server.restart()
            try expectKept(first, server)
            try expectKept(second, server)
            #expect(server.published("c") == Payload.bytes(10))
        }
    }
}
