import ConformanceKit
import TestSupport
import Testing

/// Clients that continue to send, disconnect or send nothing; the memory and the stop of the server.
@Suite("Robustness", .serialized, .blocking)
struct RobustnessTests {
    @Test("H11-24: a large upload does not increase the server's memory")
    func memory() throws {
        try withServer { server in
            let connection = try server.connect()
            let block = Payload.bytes(8 << 20)
            try connection.send(Request.creation(.v8, complete: true, .declared(256 << 20)))
            for _ in 0..<32 { try connection.send(block) }
            #expect(try connection.readResponse().status == 201)
            let peak = try #require(server.process.peakResidentBytes())
            // With a shared storage bytes are in memory until an object of at most 8 MiB is stored.
            #expect(peak < (SharedStorage.isSelected ? 192 : 96) << 20, "\(peak >> 20) MiB")
        }
    }

    @Test("H11-25: a stop stores the bytes that arrived without waiting for clients, and the upload can be resumed")
    func gracefulStop() throws {
        try withServer("--drain-timeout", "1h", "--idle-timeout", "1h") { server in
            let content = Payload.bytes(3 << 20)
            let location = try server.begin(.v8, "/files/f", Array(content[..<1000]))
            let connection = try server.connect()
            try connection.open(
                .append(.v8, location, at: 1000, complete: true, .declared(Int64(content.count - 1000))))
            try connection.send(content[1000..<2_000_000])
            let idle = try server.connect()
            #expect(try idle.exchange(.get("/healthz")).status == 200)
            #expect(try server.stop() == .exited(0))
            idle.expectClosed()
            _ = try? connection.awaitClosing()
            try server.restart()
            let offset = Int(try #require(try server.retrieve(location).offset))
            #expect((1000...2_000_000).contains(offset))
            let completion = try server.exchange(
                .append(.v8, location, at: offset, complete: true, .bytes(Array(content[offset...]))))
            #expect(completion.status == 201)
            #expect(server.published("f")?.sha256 == content.sha256)
        }
    }
}
