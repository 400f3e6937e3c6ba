import ConformanceKit
import Testing

/// What the server keeps of interrupted requests. The log reports when it has stored their bytes.
@Suite("Interrupted requests", .serialized, .blocking)
struct InterruptedRequestTests {
    @Test(
        "CRE-15 CRE-16 CRE-18 H11-13: an interrupted creation keeps its bytes and its length, and is not complete",
        arguments: [true, false])
    func creation(byReset: Bool) throws {
        try withServer { server in
            let content = Payload.bytes(100_000)
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: true, .declared(100_000)))
            let location = try #require(try connection.requireInterim().location)
            try connection.send(content[..<40_000])
            try connection.awaitAcknowledgment()
            byReset ? connection.reset() : connection.close()
            try server.awaitInterruption("PUT")
            let state = try server.retrieve(location)
            #expect(state.offset == 40_000)
            #expect(state.complete == false)
            #expect(state.length == 100_000)
            #expect(server.publishedNames().isEmpty)
            let completion = try server.exchange(
                .append(.v8, location, at: 40_000, complete: true, .bytes(Array(content[40_000...]))))
            #expect(completion.status == 201)
            #expect(completion.complete == true)
            #expect(server.published("file.bin")?.sha256 == content.sha256)
        }
    }

    @Test("LIM-06: the bytes of an interrupted request are kept, even if they are fewer than --min-append-size")
    func minAppendSize() throws {
        try withServer("--min-append-size", "10") { server in
            let location = try server.begin()
            let connection = try server.connect()
            try connection.open(.append(.v8, location, at: 0, complete: false, .declared(20)))
            try connection.send([1, 2, 3])
            connection.close()
            try server.awaitInterruption("PATCH")
            #expect(try server.retrieve(location).offset == 3)
        }
    }

    @Test("DIG-02 DIG-07: bytes do not count before their Content-Digest is compared, not even after an interruption")
    func contentDigest() throws {
        try withServer { server in
            let content = Payload.bytes(32 << 20)
            let location = try server.begin(.v8, "/files/f", [1])
            let connection = try server.connect()
            let request = Request.append(.v8, location, at: 1, complete: true, .declared(Int64(content.count)))
                .with("Content-Digest", content.digestField())
            try connection.open(request)
            for start in stride(from: 0, to: 24 << 20, by: 8 << 20) {
                try connection.send(content[start..<start + (8 << 20)])
            }
            while !connection.staysSilent(for: .milliseconds(50)) { try connection.requireInterim() }
            #expect(connection.interim.allSatisfy { ($0.offset ?? 1) <= 1 })
            connection.close()
            try server.awaitInterruption("PATCH")
            #expect(try server.retrieve(location).offset == 1)
            let again = Request.append(.v8, location, at: 1, complete: true, .bytes(content))
                .with("Content-Digest", content.digestField())
            #expect(try server.exchange(again).status == 201)
            #expect(server.published("f") == [1] + content)
        }
    }
}
