import ConformanceKit
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Offset retrievals (draft section 4.3): crashes, lost bytes in the data directory, and names of uploads.
@Suite("Offset retrieval", .serialized, .blocking)
struct RetrievalTests {
    @Test("OFF-15: an upload whose bytes are missing is gone; its offset never decreases")
    func bytesLost() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(5000))
            try server.crash()
            try #require(server.unfinished.values.count { $0 == 5000 } == 1)
            try server.truncateUnfinished(to: 1234)
            try server.restart()
            for request in [
                Request.retrieval(.v8, location), .append(.v8, location, at: 1234, complete: true, .bytes([1])),
                .append(.v8, location, at: 5000, complete: true, .bytes([])), .retrieval(.v8, location),
            ] {
                let response = try server.exchange(request)
                #expect([404, 410].contains(response.status))
                #expect(!response.fields.contains("Upload-Offset"))
            }
            #expect(server.published("f") == nil)
        }
    }
}
