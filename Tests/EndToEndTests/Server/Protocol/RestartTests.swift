import ConformanceKit
import Testing

/// Tests uploads after a restart of the server.
@Suite("Uploads after a restart", .serialized, .blocking)
struct RestartTests {
    @Test("DIG-01: Repr-Digest is compared after a restart of the server, too")
    func digest() throws {
        try withServer { server in
            let content = Payload.bytes(300_000)
            let location = try server.begin(
                .v8, "/files/f", Array(content[..<123_457]), [("Repr-Digest", content.digestField())])
            try server.crash()
            try server.restart()
            let response = try server.exchange(
                .append(.v8, location, at: 123_457, complete: true, .bytes(Array(content[123_457...]))))
            #expect(response.status == 201)
        }
    }

    @Test(
        "LEN-05 LEN-06: chunked content beyond the length is refused, and the upload is invalidated",
        arguments: [true, false])
    func overrun(completes: Bool) throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", Payload.bytes(5), length: 10)
            let response = try server.exchange(
                .append(.v8, location, at: 5, complete: completes, .chunks([Payload.bytes(6)])))
            #expect((400..<500).contains(response.status))
            #expect(response.complete == false)
            for request in [
                Request.retrieval(.v8, location),
                .append(.v8, location, at: 5, complete: true, .bytes(Payload.bytes(5))),
                .append(.v8, location, at: 10, complete: true, .bytes([])), .retrieval(.v5, location),
            ] {
                #expect([404, 410].contains(try server.exchange(request).status))
            }
            try server.crash()
            try server.restart()
            #expect([404, 410].contains(try server.retrieve(location).status))
            #expect(server.published("f") == nil)
        }
    }

    @Test("LIM-10 LIM-11: an upload keeps the limits that applied at its creation")
    func limits() throws {
        try withServer("--max-size", "1000", "--max-append-size", "500", "--min-append-size", "1") { server in
            let location = try server.begin(.v8, "/files/f", [1])
            try server.crash()
            try server.restart([
                "--max-size", "10", "--max-append-size", "5", "--min-append-size", "4", "--min-size", "3",
            ])
            let limits = try #require(try server.retrieve(location).limits)
            #expect(limits["max-size"] == 1000)
            #expect(limits["max-append-size"] == 500)
            #expect(limits["min-append-size"] == 1)
            #expect(limits["min-size", default: 0] == 0)
            let response = try server.exchange(
                .append(.v8, location, at: 1, complete: true, .bytes(Payload.bytes(100))))
            #expect(response.status == 201)
        }
    }

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
