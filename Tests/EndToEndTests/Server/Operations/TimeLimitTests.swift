import ConformanceKit
import Glibc
import TestSupport
import Testing

/// `--header-timeout` and `--idle-timeout`: connections without progress are closed.
@Suite("Time limits", .blocking)
struct TimeLimitTests {
    private let clock = ContinuousClock()

    private func hasEnded(_ connection: RawConnection) -> Bool { (try? connection.awaitClosing(within: .zero)) != nil }

    /// Expects that the server closes the connection that `begin` returns: never earlier than `limit` after the
    /// returned time, and in at least one of four tries within four times `limit`. A busy machine may delay the others.
    /// - Parameter bytes: the bytes to send one by one while the connection is open.
    private func expectEnd(
        after limit: Duration, sending bytes: [UInt8] = [], sourceLocation: SourceLocation = #_sourceLocation,
        of begin: () throws -> (connection: RawConnection, since: ContinuousClock.Instant)
    ) throws {
        for _ in 0..<4 {
            let (connection, begun) = try begin()
            var remaining = bytes[...]
            let end = Deadline(in: limit * 4)
            let isInTime: Bool? = pollUntil(within: .seconds(60)) {
                // The order matters: if this thread was suspended, a connection that ended meanwhile was in time.
                let isLate = end.isOver
                if hasEnded(connection) { return true }
                if let byte = remaining.popFirst(), (try? connection.send([byte])) == nil { return true }
                return isLate ? false : nil
            }
            guard isInTime == true else { continue }
            // Both sides read their clocks at different moments.
            #expect(
                clock.now - begun > limit - .milliseconds(50), "the connection ends early",
                sourceLocation: sourceLocation)
            return
        }
        Issue.record("the connection ends late", sourceLocation: sourceLocation)
    }

    @Test(
        "Connections that send nothing, a part of a head, or a head byte by byte end with the header timeout",
        arguments: ["", "GET /files/f.bin HTTP/1.1\r\nHost: localhost\r\nX: "], [0, 3000])
    func head(half: String, more: Int) throws {
        try withServer("--header-timeout", "2", "--idle-timeout", "30") { server in
            let bytes = more == 0 ? [] : Array((half.isEmpty ? "GET /" : "").utf8) + Array(repeating: 0x61, count: more)
            try expectEnd(after: .seconds(2), sending: bytes) {
                let begun = clock.now
                let connection = try server.connect()
                try connection.send(half)
                return (connection, begun)
            }
            #expect(try server.exchange(.get("/healthz")).status == 200)
        }
    }

    @Test("A kept-alive connection ends with the idle timeout, and not while it is used")
    func keptAlive() throws {
        try withServer("--idle-timeout", "2") { server in
            try expectEnd(after: .seconds(2)) {
                try Pace.within(.seconds(2)) { pace in
                    let connection = try server.connect()
                    var last = clock.now
                    for _ in 0..<8 {
                        Deadline.pause(.milliseconds(400))
                        last = clock.now
                        _ = try connection.exchange(.get("/healthz"))
                        pace.step()
                    }
                    return (connection, last)
                }
            }
            #expect(eventually { server.connectionThreads == 0 })
        }
    }

    @Test(
        "SEC-07 APP-13: an upload that sends no byte during the idle timeout is cut, keeps its content and is resumed"
    )
    func upload() throws {
        try withServer("--idle-timeout", "2") { server in
            let content = Payload.bytes(1000)
            var location: String?
            try expectEnd(after: .seconds(2)) {
                // As long as bytes arrive, the timeout starts again.
                try Pace.within(.seconds(2)) { pace in
                    let connection = try server.connect()
                    try connection.send(Request.creation(complete: true, .declared(1000)))
                    location = try connection.requireInterim().location
                    pace.step()
                    var last = clock.now
                    for number in 0..<16 {
                        Deadline.pause(.milliseconds(200))
                        last = clock.now
                        try connection.send(content[number * 25..<(number + 1) * 25])
                        pace.step()
                    }
                    guard !hasEnded(connection) else { throw WireFailure.reset("by the peer") }
                    return (connection, last)
                }
            }
            let upload = try #require(location)
            let state = try server.exchange(.retrieval(.v8, upload))
            #expect(state.offset == 400)
            let remaining = Array(content[400...])
            let response = try server.exchange(.append(.v8, upload, at: 400, complete: true, .bytes(remaining)))
            #expect(response.status == 201)
            #expect(server.published("file.bin") == content)
        }
    }

    @Test("SEC-07: the connection of a client that does not read its download is closed; that of a slow reader is not")
    func download() throws {
        let content = Payload.bytes(9 << 20)
        try withServer("--idle-timeout", "3") { server in
            try server.place(content, as: "f.bin")
            func begin() throws -> RawConnection {
                let connection = try server.connect(receiveBuffer: 64 << 10)
                try connection.send(.get("/files/f.bin"))
                return connection
            }
            let stuck = try begin()
            let (slow, response) = try Pace.within(.seconds(3)) { pace in
                let slow = try begin()
                // The client reads a piece now and then, for longer than the timeout.
                for _ in 0..<15 {
                    guard try slow.receiveMore(until: Deadline(in: .seconds(60))) == nil else {
                        throw WireFailure.reset("by the peer")
                    }
                    pace.step()
                    Deadline.pause(.milliseconds(300))
                }
                return (slow, try slow.readResponse())
            }
            #expect(areEqual(response.content, content))
            #expect(eventually { server.connectionThreads <= 1 })
            withExtendedLifetime((stuck, slow)) {}
        }
    }

    @Test("SEC-07: a stuck download is closed on a Unix socket, too, and also if the file has been truncated")
    func otherDownloads() throws {
        let content = Payload.bytes(9 << 20)
        let directory = try TemporaryDirectory()
        let path = directory.path + "/socket"
        try withServer("--idle-timeout", "2", "--listen", "127.0.0.1:0", "--listen", "unix:" + path) { server in
            try server.place(content, as: "f.bin")
            let local = try RawConnection(unixPath: path)
            try local.send(.get("/files/f.bin"))
            let shrunk = try server.connect(receiveBuffer: 64 << 10)
            try shrunk.send(.get("/files/f.bin"))
            // Both downloads have begun.
            for connection in [local, shrunk] { _ = try connection.receiveMore(until: Deadline(in: .seconds(60))) }
            if server.shared == nil { #expect(truncate(server.path(of: "f.bin"), 1000) == 0) }
            #expect(eventually { server.connectionThreads == 0 })
            withExtendedLifetime((local, shrunk)) {}
        }
    }

    @Test(
        "SEC-07: an upload slower than --min-rate is cut, and its content is kept; a faster upload is not cut"
    )
    func minRate() throws {
        try withServer("--min-rate", "1000", "--idle-timeout", "60") { server in
            let slow = try server.connect()
            try slow.send(Request.creation(.v8, "PUT", "/files/slow", complete: true, .declared(1_000_000)))
            let location = try #require(try slow.requireInterim().location)
            let content = Payload.bytes(2_000_000)
            let fast = try server.connect()
            try fast.send(Request.creation(.v8, "PUT", "/files/fast", complete: true, .declared(2_000_000)))
            let clock = ContinuousClock()
            let begun = clock.now
            var (slowly, quickly) = (0, 0)
            // The slow upload sends 20 bytes a second, the fast one 40,000.
            while clock.now - begun < .seconds(60), (try? slow.send(Payload.bytes(2))) != nil {
                slowly += 2
                if quickly < 1_000_000 {
                    try fast.send(content[quickly..<quickly + 4000])
                    quickly += 4000
                }
                Deadline.pause(.milliseconds(100))
            }
            #expect(clock.now - begun >= .seconds(9))
            try server.awaitLog("reason=too-slow interrupted")
            let offset = try #require(try server.retrieve(location).offset)
            #expect(offset > 0 && offset <= Int64(slowly))
            try fast.send(content[quickly...])
            #expect(try fast.readResponse().status == 201)
            let stored = server.published("fast")
            #expect(stored == content)
        }
    }

    @Test("A download slower than --min-rate is cut")
    func minRateOfDownloads() throws {
        let content = Payload.bytes(9 << 20)
        try withServer("--min-rate", "100K", "--idle-timeout", "60") { server in
            try server.place(content, as: "f.bin")
            let slow = try server.connect(receiveBuffer: 16 << 10)
            try slow.send(.get("/files/f.bin"))
            _ = try server.process.awaitErrorOutput(within: .seconds(60)) {
                $0.contains("reason=too-slow interrupted") ? true : nil
            }
            withExtendedLifetime(slow) {}
        }
    }
}
