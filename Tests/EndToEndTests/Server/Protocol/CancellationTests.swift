import ConformanceKit
import FoundationEssentials
import Testing

/// Cancellations (draft section 4.5): the quota and the files, which a client of the protocol cannot see.
@Suite("Cancellation", .serialized, .blocking)
struct CancellationTests {
    @Test("CAN-02: a cancellation releases the bytes and the quota")
    func frees() throws {
        try withServer("--quota", "150000") { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(100_000))
            let tooMuch = try server.exchange(
                .creation(.v8, "PUT", "/files/g", complete: true, .bytes(Payload.bytes(100_000))))
            #expect(!tooMuch.isSuccessful)
            #expect(try server.exchange(.cancellation(.v8, location)).status == 204)
            let fits = try server.exchange(
                .creation(.v8, "PUT", "/files/g", complete: true, .bytes(Payload.bytes(100_000))))
            #expect(fits.status == 201)
            #expect(server.unfinished.values.reduce(0, +) == 0)
        }
    }

    @Test("CAN-05: the cancellation of a completed upload does not remove its file")
    func completedStays() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            #expect(try server.exchange(.append(.v8, location, at: 1, complete: true, .bytes([]))).status == 201)
            #expect([204, 404, 410].contains(try server.exchange(.cancellation(.v8, location)).status))
            #expect(server.published("f") == [1])
        }
    }
}
