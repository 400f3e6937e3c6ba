import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// One client uses all permitted connections, and transfers almost nothing on them.
@Suite("Slow clients", .serialized, .blocking)
struct SlowClientTests {
    /// Uploads and downloads a file on new connections from another address.
    private func transfer(_ server: ServerProcess, _ name: String, fields: [(String, String)] = []) throws {
        let content = Payload.bytes(300_000)
        let upload = try RawConnection(port: server.port, source: 2)
        try upload.send(Request("PUT", "/files/" + name, fields, .declared(Int64(content.count))))
        for start in stride(from: 0, to: content.count, by: 100_000) {
            try upload.send(content[start..<start + 100_000])
            Deadline.pause(.milliseconds(30))
        }
        #expect(try upload.readResponse().status == 201)
        let download = try RawConnection(port: server.port, source: 2)
        let response = try download.exchange(Request("GET", "/files/" + name, fields))
        #expect(response.status == 200)
        let isSame = areEqual(response.content, content)
        #expect(isSame)
    }

    @Test("SEC-07: uploads and downloads of another client continue", arguments: SlowClients.Kind.allCases)
    func otherClients(kind: SlowClients.Kind) throws {
        try withServer("--max-connections", "40") { server in
            try server.place(Payload.bytes(9 << 20), as: "big")
            let slow = try SlowClients(kind, count: 50, port: server.port)
            try server.awaitLog("(--max-connections) is reached; since")
            // One long upload runs at the same time as the short transfers.
            let lasting = try RawConnection(port: server.port, source: 2)
            let content = Payload.bytes(200_000)
            try lasting.send(Request("PUT", "/files/lasting", [], .declared(Int64(content.count))))
            for round in 0..<10 {
                try lasting.send(content[round * 20_000..<(round + 1) * 20_000])
                try transfer(server, "f\(round)")
            }
            #expect(try lasting.readResponse().status == 201)
            let isSame = server.published("lasting") == content
            #expect(isSame)
            #expect(slow.opened > 40)
            try server.awaitLog("; 127.0.0.1 has the most connections, ")
            // There are 40 connections, and at most 64 others whose threads are ending.
            let metrics = try RawConnection(port: server.port, source: 2).exchange(.get("/metrics"))
            #expect(MetricSamples(metrics.text)["onward_connections"] <= 104)
        }
    }

    @Test("behind a proxy the client that the proxy reports is counted; the proxy's idle connections are kept")
    func forwarded() throws {
        try withServer("--max-connections", "40", "--allow-anonymous") { server in
            let idle = try (0..<3).map { _ in try server.connect() }
            for connection in idle { #expect(try connection.exchange(.get("/healthz")).status == 200) }
            // After a forwarded request, the connection of the proxy is again one of those that are closed last.
            let fields = [("X-Forwarded-For", "2001:db8::7")]
            #expect(try idle[0].exchange(Request("GET", "/healthz", fields)).status == 200)
            let slow = try SlowClients(
                .content, count: 50, port: server.port,
                fields: { _ in [("X-Forwarded-For", "203.0.113.1"), ("X-Forwarded-Proto", "https")] })
            try server.awaitLog("(--max-connections) is reached; since")
            for round in 0..<5 {
                try transfer(server, "f\(round)", fields: [("X-Forwarded-For", "198.51.100.\(round)")])
            }
            for connection in idle { #expect(try connection.exchange(.get("/healthz")).status == 200) }
            try server.awaitLog("; 203.0.113.1 has the most connections, ")
            withExtendedLifetime(slow) {}
        }
    }

    @Test("all addresses of an IPv6 network (/64) count as one client, and those of the next network as another one")
    func network() throws {
        try withServer("--max-connections", "40", "--allow-anonymous") { server in
            let slow = try SlowClients(
                .content, count: 50, port: server.port,
                fields: { [("X-Forwarded-For", "2001:db8:0:1:" + String($0, radix: 16) + "::1")] })
            try server.awaitLog("(--max-connections) is reached; since")
            // These connections are as slow as the others, but they are kept, because their client has only two.
            let fields = [("X-Forwarded-For", "2001:db8:0:2::1"), ("Expect", "100-continue")]
            let others = try (0..<2).map { number in
                let connection = try server.connect()
                try connection.send(Request("PUT", "/files/other\(number)", fields, .declared(100_000)))
                _ = try connection.requireInterim()
                return connection
            }
            for round in 0..<5 {
                try transfer(server, "f\(round)", fields: [("X-Forwarded-For", "198.51.100.\(round)")])
            }
            for connection in others {
                try connection.send(Payload.bytes(100_000))
                #expect(try connection.readResponse().status == 201)
            }
            try server.awaitLog("; 2001:db8:0:1::/64 has the most connections, ")
            withExtendedLifetime(slow) {}
        }
    }

    @Test("connections of a Unix socket are closed last, when no other connection is left")
    func unixSocket() throws {
        let directory = try TemporaryDirectory()
        let (path, port) = (directory.path + "/socket", try FixedPort.next())
        try withServer(
            "--max-connections", "20", "--allow-anonymous", "--listen", "127.0.0.1:\(port)", "--listen", "unix:" + path
        ) { server in
            func isOpen(_ connection: RawConnection) -> Bool {
                (try? connection.exchange(.get("/healthz")).status) == 200
            }
            func connect() throws -> RawConnection {
                let connection = try RawConnection(unixPath: path)
                #expect(isOpen(connection))
                return connection
            }
            let idle = try (0..<10).map { _ in try connect() }
            let slow = try SlowClients(
                .content, count: 30, port: port, fields: { _ in [("X-Forwarded-For", "203.0.113.1")] })
            try server.awaitLog("(--max-connections) is reached; since")
            for round in 0..<3 { try transfer(server, "f\(round)", fields: [("X-Forwarded-For", "198.51.100.7")]) }
            // These connections replace slow connections.
            let more = try (0..<5).map { _ in try connect() }
            #expect(idle.allSatisfy(isOpen) && more.allSatisfy(isOpen))
            withExtendedLifetime(slow) {}
        }
        // If there are no other connections, a connection of the Unix socket is closed for the next client.
        try withServer(
            "--max-connections", "20", "--listen", "127.0.0.1:\(port)", "--listen", "unix:" + path
        ) { server in
            let idle = try (0..<20).map { _ in
                let connection = try RawConnection(unixPath: path)
                #expect(try connection.exchange(.get("/healthz")).status == 200)
                return connection
            }
            let visitor = try RawConnection(port: port)
            #expect(try visitor.exchange(.get("/healthz")).status == 200)
            let closed: Int? = pollUntil(within: .seconds(30)) {
                let closed = idle.count { $0.isClosedByPeer }
                return closed > 0 ? closed : nil
            }
            #expect(closed == 1)
            try server.awaitLog("; a Unix socket has the most connections, 20")
        }
    }

    @Test("SEC-07 APP-13: an upload whose connection is closed for another client keeps the bytes that arrived")
    func closedUpload() throws {
        try withServer("--max-connections", "2") { server in
            func begin(_ name: String, _ count: Int) throws -> (connection: RawConnection, location: String) {
                let connection = try server.connect()
                try connection.send(Request.creation(.v8, "PUT", "/files/" + name, complete: true, .declared(500_000)))
                guard let location = try connection.requireInterim().location else { throw TestFailure("no 104") }
                try connection.send(Payload.bytes(500_000)[..<count])
                return (connection, location)
            }
            let fast = try begin("fast", 400_000)
            let slow = try begin("slow", 1000)
            // The server compares connections by the bytes that the kernel has acknowledged.
            try fast.connection.awaitAcknowledgment()
            try slow.connection.awaitAcknowledgment()
            let visitor = try RawConnection(port: server.port, source: 2)
            #expect(try visitor.exchange(.get("/healthz")).status == 200)
            _ = try server.process.awaitErrorOutput {
                $0.contains("/files/slow - ") && $0.contains("reason=too-many-connections interrupted") ? true : nil
            }
            let counted = "onward_http_requests_interrupted_total{reason=\"too-many-connections\"}"
            let metrics = MetricSamples(try visitor.exchange(.get("/metrics")).text)
            #expect(metrics[counted] == 1 && metrics["onward_connections_refused_total"] == 1)
            let offset = try #require(try visitor.exchange(.retrieval(.v8, slow.location)).offset)
            #expect(offset == 1000)
            let remaining = Array(Payload.bytes(500_000)[1000...])
            let last = try visitor.exchange(
                .append(.v8, slow.location, at: Int(offset), complete: true, .bytes(remaining)))
            #expect(last.status == 201)
            let isSame = server.published("slow") == Payload.bytes(500_000)
            #expect(isSame)
            // The faster connection is kept.
            try fast.connection.send(Payload.bytes(500_000)[400_000...])
            #expect(try fast.connection.readResponse().status == 201)
        }
    }

    @Test("all listeners share the limit: a client that reaches it at one listener does not block the other listener")
    func listeners() throws {
        let other = try FixedPort.next()
        let port = try FixedPort.next()
        try withServer(
            "--max-connections", "30", "--listen", "127.0.0.1:\(port)", "--listen", "[::1]:\(other)"
        ) { server in
            let slow = try SlowClients(.heads, count: 50, port: server.port)
            try server.awaitLog("(--max-connections) is reached; since")
            let home = try CommandHome()
            let content = Payload.bytes(3_000_000)
            for round in 0..<3 {
                let url = "http://[::1]:\(other)/files/f\(round)"
                try home.run("put", try home.file(content), url).expect(0)
                try home.run("get", url, "-o", home.path + "/f\(round)").expect(0)
                #expect(FileManager.default.contents(atPath: home.path + "/f\(round)") == Data(content))
            }
            withExtendedLifetime(slow) {}
        }
    }

    @Test("TLS handshakes that never end do not block other clients")
    func handshakes() throws {
        let fixture = try TLSFixture("--max-connections", "20")
        let slow = try SlowClients(.silent, count: 40, port: fixture.server.port)
        try fixture.server.awaitLog("(--max-connections) is reached; since")
        for _ in 0..<5 {
            let answer = try fixture.run("--interface", "127.0.0.2", fixture.url + "/healthz")
            #expect(answer.ending == .exited(0) && answer.output == "ok\n", "\(answer.output)")
        }
        withExtendedLifetime(slow) {}
    }
}
