import ConformanceKit
import Testing

/// Concurrent requests (draft section 4.6): bytes in the published file, and rare interleavings, which need many rounds.
@Suite("Concurrency", .serialized, .blocking)
struct ConcurrencyTests {
    @Test("CON-02: an append whose head is refused does not end a running append")
    func malformedAppendHarmsNothing() throws {
        try withServer { server in
            let location = try server.begin(.v8, "/files/f", [1])
            let running = try server.connect()
            try running.open(.append(.v8, location, at: 1, complete: true, .declared(4)))
            try running.send([2, 3])
            let strangers = [
                Request("PATCH", location, [("Upload-Offset", "1"), ("Upload-Complete", "?1")], .bytes([9])),
                .append(.v8, location, at: 1, complete: nil, .bytes([9])), Request("OPTIONS", location),
                Request("POST", location, [], .bytes([9])),
            ]
            for request in strangers { _ = try server.exchange(request) }
            try running.send([4, 5])
            #expect(try running.readResponse().status == 201)
            #expect(server.published("f") == [1, 2, 3, 4, 5])
        }
    }

    @Test(
        "CON-04 CON-08 OFF-11: after a cut at any byte the reported offset is accepted, and no byte is stored twice")
    func cuts() throws {
        try withServer { server in
            let content = Payload.bytes(400_000)
            let location = try server.begin(.v8, "/files/f")
            var offset = 0
            var step = 7
            var previous: RawConnection?
            while offset < content.count {
                let connection = try server.connect()
                try connection.open(
                    .append(.v8, location, at: offset, complete: false, .declared(Int64(content.count))))
                // The previous append continues to send wrong bytes as long as it can.
                if let previous { _ = try? previous.send(Payload.bytes(5000, seed: 99)) }
                step = (step * 31 + 11) % 30_011
                try connection.send(content[offset..<min(offset + step, content.count)])
                let next = Int(try #require(try server.retrieve(location).offset))
                #expect(next >= offset && next <= min(offset + step, content.count))
                offset = max(offset, next)
                previous = connection
                if next < offset { break }
                if step % 3 == 0 {
                    let piece = content[offset..<min(offset + 9000, content.count)]
                    let response = try server.exchange(
                        .append(.v8, location, at: offset, complete: false, .bytes(Array(piece))))
                    #expect(response.status == 204)
                    offset += piece.count
                }
            }
            #expect(
                try server.exchange(.append(.v8, location, at: content.count, complete: true, .bytes([]))).status == 201
            )
            #expect(server.published("f")?.sha256 == content.sha256)
        }
    }

    @Test("CON-09: a client that has sent all content gets a response, even if the state is retrieved meanwhile")
    func completingIsNotKilled() throws {
        try withServer { server in
            for round in 0..<20 {
                let location = try server.begin(.v8, "/files/f\(round)", [1])
                let connection = try server.connect()
                let retriever = try server.connect()
                let content = Payload.bytes(4 << 20)
                try connection.send(
                    Request.append(.v8, location, at: 1, complete: true, .declared(Int64(content.count))))
                try connection.send(content[..<(content.count - 1)], within: .seconds(60))
                try connection.awaitAcknowledgment()
                try connection.send(content[(content.count - 1)...])
                let state = try retriever.exchange(.retrieval(.v8, location))
                #expect(state.isSuccessful)
                if state.offset == Int64(content.count + 1) {
                    let response = try connection.readResponse()
                    #expect(response.status == 201)
                    #expect(response.complete == true)
                } else {
                    // The retrieval arrived before the last byte.
                    #expect(state.complete == false)
                }
            }
        }
    }

    @Test("CON-09: a client that has sent all content gets a response, even while its Content-Digest is compared")
    func comparingIsNotKilled() throws {
        try withServer { server in
            let content = Payload.bytes(4 << 20)
            for round in 0..<10 {
                let connection = try server.connect()
                let retriever = try server.connect()
                try connection.send(
                    Request.creation(.v8, "PUT", "/files/f\(round)", complete: true, .declared(Int64(content.count)))
                        .with("Content-Digest", content.digestField(.sha512)))
                let location = try #require(try connection.requireInterim().location)
                try connection.send(content, within: .seconds(60))
                try connection.awaitAcknowledgment()
                let state = try retriever.exchange(.retrieval(.v8, location))
                #expect(state.isSuccessful)
                // Before the last byte was read, the retrieval ended the append; afterwards there is a response.
                if let response = try? connection.readResponse() {
                    #expect(response.status == 201)
                    #expect(response.complete == true)
                } else {
                    #expect(state.complete == false)
                    #expect(state.offset == 0)
                }
            }
            #expect(!server.log.contains("storage-error"))
        }
    }

    @Test("CON-10: of two uploads for the same file, the one that completes last determines the content")
    func sameTarget() throws {
        try withServer { server in
            let first = try server.begin(.v8, "/files/f", [1])
            let second = try server.begin(.v8, "/files/f", [2])
            #expect(try server.exchange(.append(.v8, second, at: 1, complete: true, .bytes([]))).status == 201)
            #expect(server.published("f") == [2])
            #expect(try server.exchange(.append(.v8, first, at: 1, complete: true, .bytes([]))).isSuccessful)
            #expect(server.published("f") == [1])
        }
    }
}
