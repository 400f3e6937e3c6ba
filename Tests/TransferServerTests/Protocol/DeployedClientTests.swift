import ConformanceKit
import HTTPTestSupport
import Testing

/// The requests of existing clients, which depend on behavior beyond the draft.
@Suite("Deployed clients", .blocking)
struct DeployedClientTests {
    // MARK: The Go client of rufh-implementations

    @Test("the Go client: an upload with chunked content of unknown length is cut and resumed")
    func goClient() throws {
        try withSocket { server in
            let content = Payload.bytes(200_000)
            let fields = [
                ("User-Agent", "Go-http-client/1.1"), ("Upload-Draft-Interop-Version", "6"),
                ("Accept-Encoding", "gzip"),
            ]
            let connection = try server.connect()
            try connection.send(Request("POST", "/files/", fields + [("Upload-Complete", "?1")], .openChunks))
            let location = try #require(try connection.requireInterim().location)
            for start in stride(from: 0, to: 98_304, by: 32_768) {
                try connection.sendChunk(Array(content[start..<start + 32_768]))
            }
            try connection.awaitAcknowledgment()
            connection.close()
            try server.awaitInterruption("POST")
            let state = try server.exchange(Request("HEAD", location, [("Upload-Draft-Interop-Version", "6")]))
            let offset = Int(try #require(state.offset))
            #expect(offset == 98_304)
            let completion = try server.exchange(
                Request(
                    "PATCH", location,
                    fields + [
                        ("Content-Type", "application/partial-upload"), ("Upload-Offset", "\(offset)"),
                        ("Upload-Complete", "?1"),
                    ], .chunks([Array(content[offset..<150_000]), Array(content[150_000...])])))
            #expect(completion.isSuccessful)
            let name = try #require(server.data.publishedNames().first)
            #expect(server.data.published(name)?.sha256 == content.sha256)
        }
    }

    // MARK: URLSession, with the requests in the tests of swift-nio-extras

    /// The versions that URLSession supports.
    private static let apple: [Interop] = [.v3, .v5, .v6, .v8]

    @Test(
        "NIO: an upload is interrupted after two bytes and continued; any version can retrieve the offset",
        arguments: apple,
        [Interop.v3, .v8])
    func interrupted(version: Interop, retrieval: Interop) throws {
        try withSocket { server in
            let connection = try server.connect()
            let length = version >= .v6 ? 5 : nil
            try connection.send(
                Request.creation(version, "POST", "/files/", complete: true, length: length, .declared(5)))
            let location = try #require(try connection.requireInterim().location)
            try connection.send("He")
            try connection.awaitAcknowledgment()
            connection.reset()
            try server.awaitInterruption("POST")
            let state = try server.retrieve(location, retrieval)
            #expect(state.status == 204)
            #expect(state.offset == 2)
            let completion = try server.exchange(
                .append(version, location, at: 2, complete: true, .bytes(Array("llo".utf8))))
            #expect(completion.isSuccessful)
            let name = try #require(server.data.publishedNames().first)
            #expect(server.data.published(name) == Array("Hello".utf8))
        }
    }

    @Test("NIO: requests without the upload protocol are handled as usual, on one connection")
    func nonUploads() throws {
        try withSocket { server in
            let connection = try server.connect()
            #expect(try connection.exchange(.get("/files/")).status == 200)
            #expect(try connection.exchange(.get("/files/")).status == 200)
            let plain = try connection.exchange(Request("POST", "/files/", [], .bytes(Array("Hello".utf8))))
            #expect(plain.status == 201)
            #expect(plain.interim.isEmpty)
            #expect(!plain.fields.contains("Upload-Complete"))
        }
    }

    @Test("NIO: after a resumable upload the connection serves another request")
    func keepAlive() throws {
        try withSocket { server in
            let connection = try server.connect()
            let request = Request.creation(
                .v6, "POST", "/files/", complete: true, length: 5, .bytes(Array("Hello".utf8)))
            let response = try connection.exchange(request)
            #expect(response.interim.map(\.status) == [104])
            #expect(response.status == 201)
            #expect(try connection.exchange(.get("/healthz")).status == 200)
        }
    }

    @Test("NIO: the response to OPTIONS of version 6 has the limits")
    func options() throws {
        try withService { server in
            let response = try server.exchange(Request("OPTIONS", "/files/", Request.versionField(.v6)))
            #expect(response.isSuccessful)
            #expect(response.limits?.isEmpty == false)
        }
    }

    @Test("NIO: two parts with a retrieval between them form one file", arguments: apple)
    func parts(version: Interop) throws {
        try withService { server in
            let length = version >= .v5 ? 5 : nil
            let creation = Request.creation(
                version, "POST", "/files/", complete: false, length: length, .bytes(Array("He".utf8)))
            let created = try server.exchange(creation)
            #expect(created.interim.map(\.status) == [104])
            #expect(created.status == 201)
            let location = try #require(created.location)
            #expect(try server.retrieve(location, version).offset == 2)
            let append = Request.append(
                version, location, at: 2, complete: true, length: length, .bytes(Array("llo".utf8)))
            #expect(try server.exchange(append).isSuccessful)
            let name = try #require(server.data.publishedNames().first)
            #expect(server.data.published(name) == Array("Hello".utf8))
        }
    }

    @Test(
        "NIO: parts of several sizes, each on a new connection and with the total length, form one file",
        arguments: [[10], [10, 10], [10, 7, 5, 3], [1, 3, 5, 7], [10, 10, 10, 6]])
    func partsAcrossConnections(sizes: [Int]) throws {
        try withService { server in
            let total = sizes.reduce(0, +)
            let content = Payload.bytes(total)
            var location: String?
            var offset = 0
            for (index, size) in sizes.enumerated() {
                let isLast = index == sizes.count - 1
                let part = Request.Content.bytes(Array(content[offset..<offset + size]))
                if let location {
                    let append = Request.append(.v6, location, at: offset, complete: isLast, length: total, part)
                    #expect(try server.exchange(append).isSuccessful)
                } else {
                    let created = try server.exchange(
                        .creation(.v6, "POST", "/files/", complete: isLast, length: total, part))
                    #expect(created.status == 201)
                    location = created.location
                }
                offset += size
            }
            let name = try #require(server.data.publishedNames().first)
            #expect(server.data.published(name) == content)
        }
    }

    // MARK: curl

    @Test("curl -T: an upload with Expect and a known length is published")
    func curl() throws {
        try withSocket { server in
            let content = Payload.bytes(2 << 20)
            let connection = try server.connect()
            let request = Request(
                "PUT", "/files/big.bin",
                [
                    ("User-Agent", "curl/7.88.1"), ("Accept", "*/*"), ("Upload-Complete", "?1"),
                    ("Upload-Draft-Interop-Version", "8"),
                ],
                .declared(Int64(content.count)))
            try connection.open(request)
            try connection.send(content)
            let response = try connection.readResponse()
            #expect(response.status == 201)
            #expect(response.interim.contains { $0.status == 104 })
            #expect(server.data.published("big.bin") == content)
        }
    }
}
