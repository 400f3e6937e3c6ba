import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// A complete upload is one ordinary request for the origin, and the origin's response is that of the upload.
@Suite("Gateway: a complete upload at the origin", .blocking)
struct GatewayHandoverTests {
    private typealias Fixture = HandoverFixture
    private static let content = HandoverFixture.content
    private static let first = "Bearer first-credential-0123456789"
    private static let last = "Bearer last-credential-0123456789"
    private static let cookie = "session=last-cookie-0123456789"

    // MARK: The request

    @Test(
        "an upload in one request: the origin gets one ordinary request, and the client its response",
        arguments: HandoverFixture.versions)
    func oneRequest(version: Interop?) throws {
        let origin = try ScriptedOrigin(Fixture.accept)
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
        arguments: HandoverFixture.versions)
    func parts(version: Interop?) throws {
        let origin = try ScriptedOrigin(Fixture.accept)
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
        let origin = try ScriptedOrigin(Fixture.accept)
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
        let origin = try ScriptedOrigin(Fixture.accept)
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
        let origin = try ScriptedOrigin(Fixture.accept)
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
        let origin = try ScriptedOrigin(Fixture.accept)
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
        let origin = try ScriptedOrigin(Fixture.accept)
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

    // MARK: The response

    @Test("a response that was lost is sent again, without Set-Cookie and without a call of the origin")
    func lostResponse() throws {
        let hold = Hold()
        let origin = try ScriptedOrigin { request, connection in
            hold.wait()
            try Fixture.accept(request, connection)
        }
        try withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            let lost = try server.connect()
            try lost.send(.append(.v8, location, at: Self.content.count, complete: true, .bytes([])))
            #expect(origin.awaitRequests(1))
            // While the origin works, the upload is not complete.
            try Fixture.expectWaiting(server, location)
            lost.reset()
            hold.release()
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8, isLive: false)
            try Fixture.expectFinal(server, origin, location) { Fixture.expectAnswer($0, .v8, isLive: false) }
            // Also in the version without a number.
            Fixture.expectAnswer(try Fixture.complete(server, location, nil), nil, isLive: false)
            #expect(origin.requests.count == 1)
            #expect(StoredBytes(of: server).places(of: "live-cookie").isEmpty)
        }
    }

    @Test("Set-Cookie reaches the client of the completing request only, and is not stored")
    func cookies() throws {
        let origin = try ScriptedOrigin(Fixture.accept)
        try withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(StoredBytes(of: server).places(of: "live-cookie").isEmpty)
            try Fixture.expectFinal(server, origin, location) { Fixture.expectAnswer($0, .v8, isLive: false) }
            #expect(origin.requests.count == 1)
        }
    }

    @Test(
        "every complete response but 503 is final",
        arguments: [
            200, 202, 204, 205, 301, 304, 400, 401, 403, 404, 409, 412, 413, 415, 422, 425, 429, 500, 501, 502, 504,
            507, 599,
        ]
    )
    func finalStatus(status: Int) throws {
        let origin = try ScriptedOrigin { _, connection in
            try connection.discardContent()
            let hasContent = status != 204 && status != 304
            try connection.send(
                "HTTP/1.1 \(status) Status\r\nRetry-After: 1\r\nX-Reason: mine\r\n"
                    + (hasContent ? "Content-Length: 4\r\n\r\nbody" : "\r\n"))
        }
        try withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            let expect = { (response: Response) in
                #expect(response.status == status && response.complete == true, "\(response)")
                #expect(response.value("X-Reason") == "mine" && response.value("Retry-After") == "1", "\(response)")
                #expect(response.text == (status == 204 || status == 304 ? "" : "body"), "\(response)")
            }
            expect(try Fixture.complete(server, location))
            try Fixture.expectFinal(server, origin, location, expect)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("responses of all framings, up to 1 MiB", arguments: ["length", "chunks", "end"], [0, 5, 300_000, 1 << 20])
    func framings(framing: String, size: Int) throws {
        let body = Payload.bytes(size)
        let origin = try ScriptedOrigin { _, connection in
            try connection.discardContent()
            try Self.respond(body, framing, connection)
        }
        try withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            for _ in 0..<2 {
                let response = try Fixture.complete(server, location)
                #expect(response.status == 200 && response.complete == true, "\(response.status)")
                #expect(response.content == body)
                #expect(response.value("X-App") == "1")
            }
            #expect(origin.requests.count == 1)
        }
    }

    private static func respond(_ body: [UInt8], _ framing: String, _ connection: ScriptedOrigin.Connection) throws {
        let head = "HTTP/1.1 200 OK\r\nX-App: 1\r\n"
        switch framing {
        case "length":
            try connection.send(head + "Content-Length: \(body.count)\r\n\r\n")
            try connection.send(body)
        case "chunks":
            try connection.send(head + "Transfer-Encoding: chunked\r\nTrailer: X-Late\r\n\r\n")
            for start in stride(from: 0, to: body.count, by: 50_000) {
                let part = Array(body[start..<min(start + 50_000, body.count)])
                try connection.send(Request.chunk(part))
            }
            try connection.send("0\r\nX-Late: 1\r\n\r\n")
        default:
            try connection.send(head + "Connection: close\r\n\r\n")
            try connection.send(body)
            connection.close()
        }
    }

    @Test("a response of more than 1 MiB cannot be stored: a final 502", arguments: ["length", "chunks", "end"])
    func tooLarge(framing: String) throws {
        let body = Payload.bytes((1 << 20) + 1)
        let origin = try ScriptedOrigin { _, connection in
            try connection.discardContent()
            try Self.respond(body, framing, connection)
        }
        try withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            let expect = { (response: Response) in
                #expect(response.status == 502 && response.complete == true, "\(response)")
                #expect(response.problem?.code == "origin-response-too-large", "\(response)")
            }
            expect(try Fixture.complete(server, location))
            try Fixture.expectFinal(server, origin, location, expect)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("an endless response does not keep the client waiting, and the origin's connection is closed")
    func endless() throws {
        let origin = try ScriptedOrigin { _, connection in
            try connection.discardContent()
            try connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            let part = Request.chunk([UInt8](repeating: 0x61, count: 60_000))
            while true { try connection.send(part) }
        }
        try withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            let response = try Fixture.complete(server, location)
            #expect(response.status == 502 && response.problem?.code == "origin-response-too-large")
            #expect(origin.awaitNoConnection())
            #expect(origin.requests.count == 1)
        }
    }

    @Test("interim responses of the origin do not end the hand-over")
    func interim() throws {
        let origin = try ScriptedOrigin { request, connection in
            try connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            try connection.discardContent()
            try connection.send("HTTP/1.1 102 Processing\r\n\r\n")
            try Fixture.accept(request, connection)
        }
        try withGateway(to: origin) { server in
            let location = try Fixture.begin(server)
            Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
            #expect(origin.requests.count == 1)
        }
    }

    // MARK: Early responses

    @Test(
        "an error before the origin has read everything is final, however the origin frames it and ends the connection",
        arguments: ["length", "chunks", "end"], ["closes", "resets", "reads on", "stays"])
    func early(framing: String, ending: String) throws {
        if framing == "end" && ending != "closes" { return }
        let hold = Hold()
        let origin = try ScriptedOrigin { _, connection in
            try connection.discardContent(atMost: 1000)
            let head = "HTTP/1.1 413 Too Large\r\nX-App: 1\r\n"
            switch framing {
            case "length": try connection.send(head + "Content-Length: 9\r\n\r\ntoo large")
            case "chunks": try connection.send(head + "Transfer-Encoding: chunked\r\n\r\n9\r\ntoo large\r\n0\r\n\r\n")
            default: try connection.send(head + "Connection: close\r\n\r\ntoo large")
            }
            switch ending {
            case "closes":
                connection.endOutput()
                _ = connection.awaitClosing(within: .seconds(30), discardingInput: true)
            case "resets":
                // The client of the connection reads the response before it can notice the reset.
                _ = connection.awaitClosing(within: .seconds(1))
                connection.reset()
            case "reads on": _ = try? connection.discardContent()
            default: hold.wait()
            }
        }
        try withGateway(to: origin) { server in
            let content = Payload.bytes(8 << 20)
            let location = try Fixture.begin(server, .v8, content)
            for _ in 0..<2 {
                let response = try Fixture.complete(server, location, at: content.count)
                #expect(response.status == 413 && response.complete == true, "\(response)")
                #expect(response.text == "too large" && response.value("X-App") == "1", "\(response)")
            }
            #expect(origin.requests.count == 1)
            hold.release()
        }
    }

    @Test(
        "an early response that the origin has not completed does not count as a complete one",
        arguments: ["length", "chunks"])
    func earlyAndIncomplete(framing: String) throws {
        let hold = Hold()
        let origin = try ScriptedOrigin { _, connection in
            try connection.discardContent(atMost: 1000)
            let head = "HTTP/1.1 200 OK\r\n"
            if framing == "length" {
                try connection.send(head + "Content-Length: 9\r\n\r\nhalf")
            } else {
                try connection.send(head + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
            }
            hold.wait()
        }
        try withGateway(to: origin) { server in
            let content = Payload.bytes(8 << 20)
            let location = try Fixture.begin(server, .v8, content)
            Fixture.expectUnknown(try Fixture.complete(server, location, at: content.count))
            try Fixture.expectFinal(server, origin, location, length: content.count) { Fixture.expectUnknown($0) }
            #expect(origin.requests.count == 1)
            hold.release()
        }
    }

    // MARK: Connections

    @Test("a connection of an earlier request, which the origin may be about to close, is not used")
    func idleConnection() throws {
        let used = Monitor<Set<Int>>([])
        let origin = try ScriptedOrigin { request, connection in
            guard used.withLock({ $0.insert(request.connection).inserted }) else { return connection.reset() }
            try Fixture.accept(request, connection)
        }
        try withGateway(to: origin) { server in
            for number in 1...6 {
                let location = try Fixture.begin(server)
                Fixture.expectAnswer(try Fixture.complete(server, location), .v8)
                #expect(origin.requests.count == number)
            }
        }
    }
}
