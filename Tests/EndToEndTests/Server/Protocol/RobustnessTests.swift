import ConformanceKit
import TestSupport
import Testing

/// The memory of the server, which a client cannot see.
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
}
