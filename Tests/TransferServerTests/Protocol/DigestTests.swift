import ConformanceKit
import Digests
import HTTPTestSupport
import Testing

/// Digests (draft section 10, RFC 9530): restarts, choices that RFC 9530 leaves to the server, and the published file.
@Suite("Digests", .blocking)
struct DigestTests {
    private static let algorithms: [Algorithm] = [.sha256, .sha512]

    @Test("DIG-01: Repr-Digest is compared for a single request, too", arguments: [true, false], [true, false])
    func representationAtOnce(isRight: Bool, isPlain: Bool) throws {
        try withService { server in
            let content = Payload.bytes(1000)
            let digest = (isRight ? content : [1]).digestField()
            let request = Request.creation(.v8, complete: isPlain ? nil : true, .bytes(content)).with(
                "Repr-Digest", digest)
            let response = try server.exchange(request)
            #expect(isRight ? response.status == 201 : (400..<500).contains(response.status))
            #expect(server.data.published("file.bin") == (isRight ? content : nil))
        }
    }

    @Test("DIG-02: the Content-Digest of a creation is compared, too", arguments: [true, false])
    func contentOfCreation(isRight: Bool) throws {
        try withService { server in
            let content = Payload.bytes(1000)
            let request = Request.creation(.v8, complete: false, .bytes(content))
                .with("Content-Digest", (isRight ? content : [1]).digestField())
            let response = try server.exchange(request)
            #expect(response.status == (isRight ? 201 : 400))
            #expect(response.complete == false)
            let location = try #require(response.interim.first?.location)
            #expect(try server.retrieve(location).offset == (isRight ? 1000 : 0))
        }
    }

    @Test(
        "DIG-03 DIG-08: the last response has the requested digest, of the preferred algorithm that is supported",
        arguments: [
            ("sha-512=3, sha-256=10", Algorithm.sha256), ("sha-512=7, sha-256=2", .sha512),
            ("sha-256=0, sha-512=1", .sha512),
            ("md5=10, unixsum=9, sha-256=1", .sha256),
        ], Transport.allCases)
    func wanted(_ wanted: (preference: String, algorithm: Algorithm), transport: Transport) throws {
        let (preference, algorithm) = wanted
        try withService(transport) { server in
            let content = Payload.bytes(5000)
            let location = try server.begin(
                .v8, "/files/f", Array(content[..<4000]), [("Want-Repr-Digest", preference)])
            let response = try server.exchange(
                .append(.v8, location, at: 4000, complete: true, .bytes(Array(content[4000...]))))
            #expect(response.value("Repr-Digest") == content.digestField(algorithm))
            let download = try server.exchange(.get("/files/f").with("Want-Repr-Digest", preference))
            #expect(download.value("Repr-Digest") == content.digestField(algorithm))
        }
    }

    @Test(
        "DIG-08: if no supported algorithm is requested, the response has no digest",
        arguments: ["sha-256=0", "md5=10", "sha-256=0, sha-512=0", "sha-256"])
    func unwanted(preference: String) throws {
        try withService { server in
            let request = Request.creation(.v8, complete: true, .bytes([1])).with("Want-Repr-Digest", preference)
            let response = try server.exchange(request)
            #expect(response.status == 201)
            #expect(!response.fields.contains("Repr-Digest"))
        }
    }

    @Test("DIG-05: every digest with a supported algorithm has to match")
    func oneOfTwoWrong() throws {
        try withService { server in
            let content = Payload.bytes(10)
            let digests = content.digestField(.sha256) + ", " + [UInt8]([1]).digestField(.sha512)
            let request = Request.creation(.v8, complete: true, .bytes(content)).with("Repr-Digest", digests)
            let response = try server.exchange(request)
            #expect(response.status == 400)
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test("DIG-06: a digest of the wrong length does not match")
    func truncatedDigest() throws {
        try withService { server in
            let content = Payload.bytes(10)
            let digest = "sha-256=:\(Array(content.digest().prefix(16)).base64):"
            let request = Request.creation(.v8, complete: true, .bytes(content)).with("Repr-Digest", digest)
            let response = try server.exchange(request)
            #expect(response.status == 400)
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test("DIG-02: a digest in a trailer is ignored")
    func trailer() throws {
        try withSocket { server in
            let connection = try server.connect()
            try connection.send(Request.creation(.v8, complete: true, .openChunks))
            try connection.sendChunk([1])
            try connection.send("0\r\nRepr-Digest: \([UInt8]([2]).digestField())\r\n\r\n")
            #expect(try connection.readResponse().status == 201)
        }
    }
}
