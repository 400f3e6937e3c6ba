import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// `--listen`: TCP addresses, Unix sockets, and errors.
@Suite("Listeners", .blocking)
struct ListenerTests {
    /// The addresses in the log, once there are `count` of them.
    private func addresses(_ process: ServerNodes, _ count: Int) throws -> [String] {
        try process.awaitErrorOutput { log in
            let found = log.split(separator: "\n", omittingEmptySubsequences: false).dropLast().compactMap { line in
                line.split(separator: "listening on ").dropFirst().first.map(String.init)
            }
            return found.count == count ? found : nil
        }
    }

    private func port(_ address: String) throws -> UInt16 {
        try #require(address.split(separator: ":").last.flatMap { UInt16($0) })
    }

    @Test("Several addresses serve the same files at the same time, including a Unix socket")
    func several() throws {
        let directory = try TemporaryDirectory()
        let socket = directory.path + "/onward.sock"
        try withServer("--listen", "127.0.0.1:0", "--listen", "localhost:0", "--listen", "unix:" + socket) { server in
            let addresses = try addresses(server.process, 3)
            #expect(addresses.contains("unix:" + socket))
            let first = try RawConnection(port: port(addresses[0]))
            let second = try RawConnection(port: port(addresses[1]))
            let third = try RawConnection(unixPath: socket)
            let created = try first.exchange(Request("PUT", "/files/f.bin", [], .bytes([1, 2, 3])))
            #expect(created.status == 201)
            for connection in [first, second, third] {
                #expect(try connection.exchange(.get("/files/f.bin")).content == [1, 2, 3])
            }
            // An upload created over one address continues over another.
            let creation = Request.creation(complete: false, .bytes([1, 2]))
            let location = try #require(try third.exchange(creation).location)
            let completed = try second.exchange(.append(.v8, location, at: 2, complete: true, .bytes([3])))
            #expect(completed.complete == true)
        }
    }

    @Test(
        "IPv6 addresses are written in brackets",
        .enabled(if: FileManager.default.contents(atPath: "/proc/net/if_inet6")?.isEmpty == false, "no IPv6 here"))
    func ipv6() throws {
        try withServer("--listen", "[::1]:0") { server in
            let address = try #require(try addresses(server.process, 1).first)
            #expect(address.hasPrefix("[::1]:"))
        }
    }

    @Test("CON-10: an upload over a Unix socket is announced, appended to and resumed as over TCP")
    func unixUpload() throws {
        let directory = try TemporaryDirectory()
        let socket = directory.path + "/onward.sock"
        let content = Payload.bytes(3 << 20)
        try withServer("--listen", "unix:" + socket) { server in
            let connection = try RawConnection(unixPath: socket)
            try connection.send(Request.creation(complete: true, .declared(Int64(content.count))))
            let location = try #require(try connection.requireInterim().location)
            try connection.send(content[..<1_000_000])
            connection.close()
            let next = try RawConnection(unixPath: socket)
            let offset = try #require(try next.exchange(.retrieval(.v8, location)).offset)
            #expect(offset <= 1_000_000)
            let remaining = Array(content[Int(offset)...])
            let response = try next.exchange(.append(.v8, location, at: Int(offset), complete: true, .bytes(remaining)))
            #expect(response.status == 201)
            #expect(areEqual(server.published("file.bin") ?? [], content))
        }
    }

    @Test("The socket file of a killed server is replaced; that of a running server, and any other file, is not")
    func staleSocket() throws {
        let directory = try TemporaryDirectory()
        let socket = directory.path + "/onward.sock"
        try withServer("--listen", "unix:" + socket) { server in
            try server.crash()
            #expect(access(socket, F_OK) == 0, "the killed server leaves its socket file")
            try server.restart()
            #expect(try RawConnection(unixPath: socket).exchange(.get("/healthz")).status == 200)

            let second = ["serve", "--root", directory.path + "/other", "--listen"]
            try OnwardRun(second + ["unix:" + socket]).expect(69, socket)
            #expect(try RawConnection(unixPath: socket).exchange(.get("/healthz")).status == 200)

            let file = directory.path + "/file"
            try Data("mine".utf8).write(to: URL(filePath: file))
            try OnwardRun(second + ["unix:" + file]).expect(69, file)
            #expect(FileManager.default.contents(atPath: file) == Data("mine".utf8))
            try OnwardRun(second + ["unix:" + directory.path + "/none/s"]).expect(69, "/none/s")
            try OnwardRun(second + ["unix:/" + String(repeating: "x", count: 200)]).expect(69)
        }
    }

    @Test(
        "For an address in use or of another machine, serve ends with 69, names the address and releases the directory")
    func busy() throws {
        try withServer { server in
            let directory = try TemporaryDirectory()
            let root = ["serve", "--root", directory.path + "/data", "--listen"]
            try OnwardRun(root + [server.authority]).expect(69, server.authority, "in use")
            // If one address fails, none is served.
            try OnwardRun(root + ["127.0.0.1:0", "--listen", server.authority]).expect(69, server.authority)
            try OnwardRun(root + ["192.0.2.1:0", "--allow-anonymous"]).expect(69, "192.0.2.1:0")
            try OnwardRun(root + ["no-such-host.invalid:0"]).expect(69, "no-such-host.invalid:0")
            #expect(try server.exchange(.get("/healthz")).status == 200)
        }
    }

    @Test("For a public address without --allow-anonymous, serve ends with 64 and names this option")
    func beyondLoopback() throws {
        let directory = try TemporaryDirectory()
        for address in ["0.0.0.0:0", "[::]:0"] {
            let run = try OnwardRun(["serve", "--root", directory.path + "/data", "--listen", address])
            // A machine without IPv6 cannot listen on this address at all.
            guard !run.output.contains("cannot listen") else { continue }
            run.expect(64, "--allow-anonymous", address.dropLast(2).description)
        }
    }
}
