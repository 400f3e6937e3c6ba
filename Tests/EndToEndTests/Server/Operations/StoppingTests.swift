import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// SIGTERM and SIGINT: received content is kept, the server waits for clients only if necessary, and the status is 0.
@Suite("Stopping", .blocking)
struct StoppingTests {
    private static let content = Payload.bytes(3 << 20)

    /// Runs `body` with a server whose timeouts are far longer than any test.
    private func withLongTimeouts(_ body: (ServerProcess) throws -> Void) throws {
        try withServer("--drain-timeout", "1h", "--idle-timeout", "1h", "--header-timeout", "1h") { try body($0) }
    }

    /// Sends the signal and waits until the process has ended with status 0.
    private func stop(_ server: ServerProcess, _ signal: Int32 = SIGTERM) throws {
        server.process.kill(signal)
        #expect(try server.process.awaitEnding() == .exited(0))
    }

    @Test(
        "H11-25 APP-13: the stop does not wait for a running upload; after the restart the remaining content completes it",
        arguments: [SIGTERM, SIGINT])
    func unfinishedUpload(signal: Int32) throws {
        try withLongTimeouts { server in
            let connection = try server.connect()
            try connection.send(Request.creation(complete: true, .declared(Int64(Self.content.count))))
            let location = try #require(try connection.requireInterim().location)
            try connection.send(Self.content[..<1_500_000])
            // The server has read the content when the upload has been stored.
            let arrived: Bool? = pollUntil(within: .seconds(60)) {
                server.unfinished.values.contains(1_500_000) ? true : nil
            }
            #expect(arrived == true)
            let idle = try server.connect()
            #expect(try idle.exchange(.get("/healthz")).status == 200)
            let silent = try server.connect()
            try stop(server, signal)
            withExtendedLifetime((idle, silent)) {}
            #expect(server.published("file.bin") == nil)

            try server.restart()
            let state = try server.exchange(.retrieval(.v8, location))
            #expect(state.offset == 1_500_000, "the offset counts all bytes that had arrived")
            #expect(state.complete == false)
            let remaining = Array(Self.content[1_500_000...])
            let response = try server.exchange(.append(.v8, location, at: 1_500_000, complete: true, .bytes(remaining)))
            #expect(response.status == 201)
            #expect(response.complete == true)
            #expect(areEqual(server.published("file.bin") ?? [], Self.content))
        }
    }

    @Test("The stop waits for a running download until a second signal comes")
    func secondSignal() throws {
        try withLongTimeouts { server in
            #expect(
                try server.exchange(Request("PUT", "/files/large", [], .bytes(Payload.bytes(40 << 20)))).status == 201)
            let slow = try server.connect()
            try slow.send(Request.get("/files/large"))
            // The first bytes of the download have arrived.
            #expect(try slow.receiveMore(until: Deadline(in: .seconds(60))) == nil)
            server.process.kill(SIGINT)
            try server.awaitLog("connections are open")
            #expect(server.process.ending == nil)
            server.process.kill(SIGINT)
            #expect(try server.process.awaitEnding(within: .seconds(60)) == .exited(0))
            withExtendedLifetime(slow) {}
        }
    }

    @Test("H11-25: the stop ends an append and a plain upload, too, and the plain upload leaves no file")
    func appendAndPlain() throws {
        try withLongTimeouts { server in
            let location = try #require(
                try server.exchange(.creation(complete: false, .bytes(Array(Self.content[..<1000])))).location)
            let append = try server.connect()
            try append.send(.append(.v8, location, at: 1000, complete: true, .openChunks))
            try append.sendChunk(Array(Self.content[1000..<500_000]))
            let plain = try server.connect()
            try plain.send(Request("PUT", "/files/plain.bin", [], .declared(1000)))
            try plain.send([1, 2, 3])
            try stop(server)
            try server.restart()
            let state = try server.exchange(.retrieval(.v8, location))
            let offset = Int(try #require(state.offset))
            #expect(offset >= 1000 && offset <= 500_000)
            let remaining = Array(Self.content[offset...])
            #expect(
                try server.exchange(.append(.v8, location, at: offset, complete: true, .bytes(remaining))).complete
                    == true)
            #expect(areEqual(server.published("file.bin") ?? [], Self.content))
            #expect(try server.download("plain.bin").status == 404)
            #expect(server.unfinished.isEmpty, "bytes without an upload are left")
        }
    }

    @Test("The stop waits for the end of a running download, and new connections are refused meanwhile")
    func download() throws {
        let large = Payload.bytes(9 << 20)
        try withServer { server in
            try server.place(large, as: "f.bin")
            let connection = try server.connect(receiveBuffer: 128 << 10)
            try connection.send(.get("/files/f.bin"))
            _ = try connection.receiveMore(until: Deadline(in: .seconds(60)))
            server.process.kill(SIGTERM)
            #expect(eventually { (try? server.connect()) == nil })
            #expect(server.process.ending == nil)
            let response = try connection.readResponse()
            #expect(areEqual(response.content, large))
            #expect(try server.process.awaitEnding(within: .seconds(60)) == .exited(0))
        }
    }

    @Test("Without any client the server ends without waiting; a second signal changes nothing")
    func idle() throws {
        try withLongTimeouts { server in try stop(server) }
        try withServer { server in
            server.process.kill(SIGTERM)
            server.process.kill(SIGINT)
            server.process.kill(SIGTERM)
            let ending = try server.process.awaitEnding(within: .seconds(60))
            #expect(ending == .exited(0))
        }
    }

    @Test("A signal during the start ends the server")
    func atStart() throws {
        let directory = try TemporaryDirectory()
        for _ in 0..<10 {
            let process = try ServerProcess.run(["--root", directory.path + "/data", "--listen", "127.0.0.1:0"])
            process.kill(SIGTERM)
            let ending = try process.awaitEnding(within: .seconds(60))
            // A signal before the program has begun has the default action.
            #expect(ending == .exited(0) || ending == .signaled(SIGTERM))
        }
    }
}
