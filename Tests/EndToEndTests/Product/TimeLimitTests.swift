import Glibc
import Testing

/// `--header-timeout` and `--idle-timeout`: nobody holds a connection for nothing.
@Suite("Time limits", .timeLimit(.minutes(15)), .blocking)
struct TimeLimitTests {
    /// How long the server takes to end the connection.
    private func untilClosed(_ connection: RawConnection, within limit: Duration = .seconds(60)) throws -> Duration {
        try ContinuousClock().measure { _ = try connection.awaitClosing(within: limit) }
    }

    @Test("Connections that send nothing, or half a head, or a head byte by byte, end with the header timeout")
    func head() throws {
        try withServer("--header-timeout", "1", "--idle-timeout", "30") { server in
            let silent = try server.connect()
            let half = try server.connect()
            try half.send("GET /files/f.bin HTTP/1.1\r\nHost: localhost\r\nX: ")
            let duration = try untilClosed(silent)
            #expect(duration < .seconds(15))
            let second = try untilClosed(half)
            #expect(second < .seconds(15))
            let slow = try server.connect()
            let clock = ContinuousClock()
            let begun = clock.now
            var isOpen = true
            for byte in "GET / HTTP/1.1\r\nHost: localhost\r\nX-Filler: ".utf8 + Array(repeating: 0x61, count: 200) {
                guard (try? slow.send([byte])) != nil, slow.staysSilent(for: .milliseconds(50)) else {
                    isOpen = false
                    break
                }
            }
            #expect(!isOpen, "each byte must not buy more time")
            #expect(clock.now - begun < .seconds(15))
            #expect(try server.exchange(.get("/healthz")).status == 200)
        }
    }

    @Test("A kept-alive connection ends with the idle timeout, and not while it is used")
    func keptAlive() throws {
        try withServer("--idle-timeout", "3") { server in
            let connection = try server.connect()
            for _ in 0..<8 {
                #expect(try connection.exchange(.get("/healthz")).status == 200)
                #expect(connection.staysSilent(for: .milliseconds(500)))
            }
            let duration = try untilClosed(connection)
            #expect(duration < .seconds(15))
            let gone: Bool? = Deadline.poll(within: .seconds(60)) { server.connectionThreads == 0 ? true : nil }
            #expect(gone == true)
        }
    }

    @Test("SEC-07 APP-13: an upload without a byte for the idle timeout is cut; what had arrived is kept and goes on")
    func upload() throws {
        try withServer("--idle-timeout", "3") { server in
            let connection = try server.connect()
            try connection.send(Request.creation(complete: true, .declared(1000)))
            let location = try #require(try connection.readInterim().location)
            // As long as bytes come, time does not count.
            for number in 0..<16 {
                try connection.send(Payload.bytes(1000)[number * 25..<(number + 1) * 25])
                _ = connection.staysSilent(for: .milliseconds(250))
            }
            let duration = try untilClosed(connection)
            #expect(duration < .seconds(15))
            let state = try server.exchange(.retrieval(.v8, location))
            #expect(state.offset == 400)
            let rest = Array(Payload.bytes(1000)[400...])
            let response = try server.exchange(.append(.v8, location, at: 400, complete: true, .bytes(rest)))
            #expect(response.status == 201)
            #expect(server.fileContent("file.bin") == Payload.bytes(1000))
        }
    }

    @Test("SEC-07: a client that does not read its download is let go; one that reads slowly is not")
    func download() throws {
        let content = Payload.bytes(9 << 20)
        try withServer("--idle-timeout", "3") { server in
            try server.place(content, as: "f.bin")
            let stuck = try RawConnection(port: server.port, authority: server.authority, receiveBuffer: 64 << 10)
            try stuck.send(.get("/files/f.bin"))
            let slow = try RawConnection(port: server.port, authority: server.authority, receiveBuffer: 64 << 10)
            try slow.send(.get("/files/f.bin"))
            // It takes a piece now and then, for longer than the limit.
            for _ in 0..<15 {
                let closing = try slow.receiveMore(until: Deadline(.seconds(60)))
                #expect(closing == nil)
                _ = Deadline.poll(within: .milliseconds(300)) { nil as Bool? }
            }
            let response = try slow.readResponse(within: .seconds(60))
            #expect(areEqual(response.body, content))
            let gone: Bool? = Deadline.poll(within: .seconds(60)) { server.connectionThreads <= 1 ? true : nil }
            #expect(gone == true)
            withExtendedLifetime(stuck) {}
        }
    }

    @Test("SEC-07: a stuck download is let go on a Unix socket, too, and where the file has shrunk")
    func otherDownloads() throws {
        let content = Payload.bytes(9 << 20)
        let directory = try TemporaryDirectory()
        let path = directory.path + "/socket"
        try withServer("--idle-timeout", "2", "--listen", "127.0.0.1:0", "--listen", "unix:" + path) { server in
            try server.place(content, as: "f.bin")
            let local = try RawConnection(unixPath: path)
            try local.send(.get("/files/f.bin"))
            let shrunk = try RawConnection(port: server.port, authority: server.authority, receiveBuffer: 64 << 10)
            try shrunk.send(.get("/files/f.bin"))
            let hasBegun: Bool? = Deadline.poll(within: .seconds(60)) { server.connectionThreads == 2 ? true : nil }
            #expect(hasBegun == true)
            #expect(truncate(server.path(of: "f.bin"), 1000) == 0)
            let gone: Bool? = Deadline.poll(within: .seconds(60)) { server.connectionThreads == 0 ? true : nil }
            #expect(gone == true)
            withExtendedLifetime((local, shrunk)) {}
        }
    }

    @Test(
        "SEC-07: below --min-rate an upload is cut and what arrived is kept; above it, or while the server works, it is not"
    )
    func minimumRate() throws {
        try withServer("--min-rate", "1000", "--idle-timeout", "60") { server in
            let slow = try server.connect()
            try slow.send(Request.creation(.v8, "PUT", "/files/slow", complete: true, .declared(1_000_000)))
            let location = try #require(try slow.readInterim().location)
            let content = Payload.bytes(2_000_000)
            let fast = try server.connect()
            try fast.send(Request.creation(.v8, "PUT", "/files/fast", complete: true, .declared(2_000_000)))
            let clock = ContinuousClock()
            let begun = clock.now
            var (slowly, quickly) = (0, 0)
            // Twenty bytes a second, and forty thousand.
            while clock.now - begun < .seconds(60), (try? slow.send(Payload.bytes(2))) != nil {
                slowly += 2
                if quickly < 1_000_000 {
                    try fast.send(content[quickly..<quickly + 4000])
                    quickly += 4000
                }
                _ = Deadline.poll(within: .milliseconds(100)) { nil as Bool? }
            }
            #expect(clock.now - begun >= .seconds(9))
            _ = try server.process.awaitErrorOutput { $0.contains("by=too-slow interrupted") ? true : nil }
            let offset = try #require(try server.retrieve(location).offset)
            #expect(offset > 0 && offset <= Int64(slowly))
            try fast.send(content[quickly...])
            #expect(try fast.readResponse().status == 201)
            let stored = server.fileContent("fast")
            #expect(stored == content)
        }
    }

    @Test("below --min-rate a download is cut")
    func minimumRateOfDownloads() throws {
        let content = Payload.bytes(9 << 20)
        try withServer("--min-rate", "100K", "--idle-timeout", "60") { server in
            try server.place(content, as: "f.bin")
            let slow = try RawConnection(port: server.port, authority: server.authority, receiveBuffer: 16 << 10)
            try slow.send(.get("/files/f.bin"))
            _ = try server.process.awaitErrorOutput(within: .seconds(60)) {
                $0.contains("by=too-slow interrupted") ? true : nil
            }
            withExtendedLifetime(slow) {}
        }
    }
}
