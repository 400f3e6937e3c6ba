import ConformanceKit
import FoundationEssentials
import Glibc
import SystemCalls
import TestSupport
import Testing

/// A client that requests too much is limited, and the other clients are still served.
@Suite("Floods", .serialized, .blocking)
struct FloodTests {
    private func use(_ server: ServerProcess) throws -> ProcessUse { try ProcessUse(of: server.process.identifier) }

    @Test("connections beyond --max-connections are closed, none hangs, and their threads and descriptors are released")
    func connections() throws {
        try withServer("--max-connections", "40", "--header-timeout", "5") { server in
            #expect(try server.exchange(.get("/healthz")).status == 200)
            #expect(eventually { server.connectionThreads == 0 })
            let before = try use(server)
            let port = server.port
            // This limit is below the limit of libmicrohttpd, which is no protection: it applies to each listener
            // separately.
            let closed = Monitor(0)
            let statuses = try ConcurrentClients.run(90) { _ in
                let connection = try RawConnection(port: port)
                let status = try? connection.exchange(.get("/healthz")).status
                // Each client keeps its connection open until the server has closed enough connections.
                var isCounted = false
                _ = pollUntil(within: .seconds(60)) { () -> Bool? in
                    if !isCounted, connection.isClosedByPeer {
                        isCounted = true
                        closed.withLock { $0 += 1 }
                    }
                    return closed.withLock { $0 } >= 50 ? true : nil
                }
                return status
            }
            #expect(statuses.contains(200) && closed.withLock { $0 } >= 50)
            // The server counts a connection until its thread has ended.
            #expect(eventually { (try? server.exchange(.get("/healthz")).status) == 200 })
            let settled: Bool? = pollUntil(within: .seconds(60)) {
                guard let now = try? use(server) else { return nil }
                return now.descriptors <= before.descriptors && now.threads <= before.threads ? true : nil
            }
            #expect(settled == true)
        }
    }

    @Test("SEC-08: simultaneous creations do not exceed the permitted number of uploads")
    func creations() throws {
        try withServer("--max-uploads", "20") { server in
            let port = server.port
            let statuses = try ConcurrentClients.run(16) { client in
                try (0..<10).map { number in
                    try RawConnection(port: port).exchange(
                        .creation(.v8, "PUT", "/files/\(client)-\(number)", complete: false, .bytes([1]))
                    ).status
                }
            }.flatMap { $0 }
            #expect(statuses.count { $0 == 201 } == 20)
            #expect(statuses.count { $0 == 429 } == 140)
            #expect(server.unfinished.count == 20)
        }
    }

    @Test("SEC-06: simultaneous uploads do not exceed the quota")
    func quota() throws {
        try withServer("--quota", "500K") { server in
            let port = server.port
            let statuses = try ConcurrentClients.run(16) { client in
                try (0..<4).map { number in
                    try RawConnection(port: port).exchange(
                        .creation(
                            .v8, "PUT", "/files/\(client)-\(number)", complete: true, .bytes(Payload.bytes(20_000)))
                    ).status
                }
            }.flatMap { $0 }
            #expect(statuses.count { $0 == 201 } == 25)
            #expect(statuses.count { $0 == 507 } == 39)
            #expect(server.publishedNames().count == 25)
        }
    }

    @Test("content in chunks of one byte is accepted, and the server's memory does not grow")
    func tinyChunks() throws {
        try withServer { server in
            let content = Payload.bytes(30_000)
            let before = try use(server)
            let connection = try server.connect()
            try connection.send(Request("PUT", "/files/f", [], .openChunks))
            for start in stride(from: 0, to: content.count, by: 1000) {
                try connection.send(content[start..<start + 1000].flatMap { Request.chunk([$0]) })
            }
            try connection.sendLastChunk()
            #expect(try connection.readResponse(within: .seconds(60)).status == 201)
            #expect(server.published("f") == content)
            #expect(try use(server).resident < before.resident + (16 << 10))
        }
    }

    @Test("the memory for an endless head of an unauthorized client is bounded", arguments: [100, 30_000, 200_000])
    func heads(size: Int) throws {
        let fixture = try TokenFixture("anna token-of-anna-0001", "--header-timeout", "60")
        let server = fixture.server
        #expect(try server.exchange(.get("/healthz")).status == 200)
        let before = try use(server)
        let connections = try (0..<100).map { _ in try server.connect() }
        let head =
            Array("PUT /files/f HTTP/1.1\r\nHost: localhost\r\nX-Filler: ".utf8) + [UInt8](repeating: 0x61, count: size)
        for connection in connections { _ = connection.sendUntilRefused(head, within: .milliseconds(50)) }
        // The maximum resident memory while the server reads the heads.
        var maxResident = 0
        _ = try pollUntil(within: .seconds(2)) { () -> Bool? in
            maxResident = max(maxResident, try use(server).resident)
            return nil
        }
        let each = (maxResident - before.resident) / connections.count
        print("a head of \(size) bytes uses \(each) KiB of memory")
        // A sanitizer more than doubles the memory.
        let environment = ProcessInfo.processInfo.environment
        let isSanitized = environment["TSAN_OPTIONS"] != nil || environment["ASAN_OPTIONS"] != nil
        #expect(each < (isSanitized ? 1600 : 200))
        #expect(try server.exchange(.get("/healthz")).status == 200)
    }

    @Test("a second head that arrives byte by byte does not extend the idle timeout")
    func slowSecondHead() throws {
        try withServer("--idle-timeout", "2", "--header-timeout", "60") { server in
            let connection = try server.connect()
            let clock = ContinuousClock()
            let begun = clock.now
            #expect(try connection.exchange(.get("/healthz")).status == 200)
            var isOpen = true
            for byte in Array("GET /healthz HTTP/1.1\r\nX-Filler: ".utf8) + [UInt8](repeating: 0x61, count: 600) {
                guard (try? connection.send([byte])) != nil, connection.staysSilent(for: .milliseconds(50)) else {
                    isOpen = false
                    break
                }
            }
            #expect(!isOpen, "bytes must not extend the timeout")
            #expect(clock.now - begun > .milliseconds(1950))
            _ = try connection.awaitClosing(within: .seconds(60))
            try server.awaitLog("listening")
        }
    }
}
