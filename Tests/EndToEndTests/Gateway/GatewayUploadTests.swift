import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// A complete upload is one ordinary request for the origin, and the origin's response is that of the upload.
@Suite("Gateway: a complete upload at the origin", .blocking)
struct GatewayUploadTests {
    private typealias Fixture = GatewayUploadFixture
    private static let content = GatewayUploadFixture.content
    private static let first = "Bearer first-credential-0123456789"
    private static let last = "Bearer last-credential-0123456789"
    private static let cookie = "session=last-cookie-0123456789"

    // MARK: The request

    @Test(
        "an upload in one request: the origin gets one ordinary request, and the client its response",
        arguments: GatewayUploadFixture.versions)
    func oneRequest(version: Interop?) throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withGateway(to: origin) { server in
            var request = Request.creation(version, "POST", Fixture.target, complete: true, .bytes(Self.content))
            request.fields += Fixture.fields + Fixture.unforwarded
            request.fields += [
                ("Content-Digest", Self.content.digestField()), ("Authorization", Self.first),
                ("Cookie", Self.cookie), ("Expect", "100-continue"),
            ]
            let response = try server.exchange(request)
            Fixture.expectAnswer(response, version, isCreation: true)
            try Fixture.expectRequest(
                origin.requests.first, credentials: [("Authorization", Self.first), ("Cookie", Self.cookie)])
            #expect(origin.requests.count == 1 && origin.malformed.isEmpty)
        }
    }

    @Test(
        "an upload in parts with an interruption: the origin gets one request, with the credentials of the last part",
        arguments: GatewayUploadFixture.versions)
    func parts(version: Interop?) throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withGateway(to: origin) { server in
            let location = try Fixture.begin(
                server, version, Array(Self.content[..<10_000]),
                fields: Fixture.fields + Fixture.unforwarded + [("Authorization", Self.first)])
            let cut = try server.connect()
            try cut.send(
                Request.append(version, location, at: 10_000, complete: true, .declared(90_000))
                    .with("Authorization", "Bearer cut-credential-0123456789"))
            try cut.send(Self.content[10_000..<60_000])
            try cut.awaitAcknowledgment()
            cut.reset()
            try server.awaitInterruption("PATCH")
            let state = try server.retrieve(location, version)
            #expect(state.states(complete: false, in: version))
            let offset = Int(try #require(state.offset))
            #expect(10_000...60_000 ~= offset)
            #expect(origin.requests.isEmpty, "the origin was called before the upload was complete")

            var request = Request.append(
                version, location, at: offset, complete: true, .bytes(Array(Self.content[offset...])))
            request.fields += [
                ("Authorization", Self.last), ("Cookie", Self.cookie), ("Cookie", "theme=dark"),
                ("X-Album", "not the creation's"), ("Content-Digest", Self.content[offset...].digestField()),
            ]
            Fixture.expectAnswer(try server.exchange(request), version)
            try Fixture.expectRequest(
                origin.requests.first,
                credentials: [("Authorization", Self.last), ("Cookie", Self.cookie), ("Cookie", "theme=dark")])
            let after = try server.retrieve(location, version)
            #expect(after.states(complete: true, in: version))
            #expect(after.offset == Int64(Self.content.count))
            #expect(origin.requests.count == 1 && origin.malformed.isEmpty)
        }
    }

    @Test("a credential that Connection names belongs to the connection, and the origin does not get it")
    func nominatedCredential() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            let response = try Fixture.complete(
                server, location, .v8,
                [("Connection", "X-Api-Key"), ("X-Api-Key", "key-of-a-connection-0123"), ("Cookie", Self.cookie)])
            #expect(response.status == 201)
            try Fixture.expectRequest(origin.requests.first, credentials: [("Cookie", Self.cookie)])
            #expect(origin.requests.count == 1)
        }
    }

    @Test(
        "every method of a creation, with and without content", arguments: ["POST", "PUT", "PATCH"], [0, 1, 300_000])
    func methods(method: String, length: Int) throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withGateway(to: origin) { server in
            let content = Payload.bytes(length)
            let targets = ["/app", "/app/", "/app/a", "/app/a/b;c=d?", "/app?x"]
            for (number, target) in targets.enumerated() {
                var request = Request.creation(.v8, method, target, complete: true, .bytes(content))
                request.fields += Fixture.fields
                #expect(try server.exchange(request).status == 201)
                try Fixture.expectRequest(origin.requests.last, method: method, target: target, content)
                #expect(origin.requests.count == number + 1)
            }
            #expect(origin.malformed.isEmpty)
        }
    }

    @Test("content of unknown length has a length for the origin")
    func unknownLength() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withGateway(to: origin) { server in
            var request = Request.creation(
                .v8, "POST", Fixture.target, complete: true,
                .chunks([Array(Self.content[..<1000]), Array(Self.content[1000...])]))
            request.fields += Fixture.fields
            Fixture.expectAnswer(try server.exchange(request), .v8)
            try Fixture.expectRequest(origin.requests.first)
            #expect(origin.requests.count == 1)
        }
    }

    // MARK: Digests

    @Test("Onward-Digest has the digests of Repr-Digest that were verified, and no others")
    func digests() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withGateway(to: origin) { server in
            let sha256 = Self.content.digestField()
            let sha512 = Self.content.digestField(.sha512)
            let cases: [(sent: [String], verified: String?)] = [
                ([sha256], sha256), ([sha256, sha512], "\(sha256), \(sha512)"), (["md5=:AAAA:, " + sha512], sha512),
                (["md5=:AAAA:"], nil), (["sha-256=no-bytes"], nil), ([], nil),
            ]
            for (number, (sent, verified)) in cases.enumerated() {
                var request = Request.creation(.v8, "POST", "/app/x", complete: true, .bytes(Self.content))
                request.fields += sent.map { ("Repr-Digest", $0) }
                let response = try server.exchange(request)
                #expect(response.status == 201, "\(sent)")
                #expect(origin.requests.count == number + 1)
                #expect(origin.requests.last?.fields.values("Onward-Digest") == [verified].compactMap { $0 }, "\(sent)")
            }
        }
    }

    @Test("content that does not match Repr-Digest or Content-Digest never reaches the origin")
    func wrongDigest() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withGateway(to: origin) { server in
            let wrong = Payload.bytes(10, seed: 2).digestField()
            let location = try Fixture.begin(server, fields: [("Repr-Digest", wrong)])
            for _ in 0..<2 {
                let response = try Fixture.complete(server, location)
                #expect(response.status == 400 && response.complete == true, "\(response)")
            }
            let refused = try server.exchange(
                .creation(.v8, "POST", "/app/x", complete: true, .bytes(Self.content)).with("Content-Digest", wrong))
            #expect(refused.status == 400 && refused.complete == false, "\(refused)")
            #expect(origin.requests.isEmpty)
        }
    }
}
