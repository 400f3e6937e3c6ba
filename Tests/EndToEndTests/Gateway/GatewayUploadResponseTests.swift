import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// The response of the origin to a complete upload is the response of the upload.
@Suite("Gateway: the response of the origin", .blocking)
struct GatewayUploadResponseTests {
    private typealias Fixture = GatewayUploadFixture
    private static let content = GatewayUploadFixture.content

    @Test("a response that was lost is sent again, without Set-Cookie and without a call of the origin")
    func lostResponse() throws {
        let hold = Hold()
        let origin = try ScriptedServer.origin { request, connection in
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
            // The same applies to the version without a number.
            Fixture.expectAnswer(try Fixture.complete(server, location, nil), nil, isLive: false)
            #expect(origin.requests.count == 1)
            #expect(StoredBytes(of: server).places(of: "live-cookie").isEmpty)
        }
    }

    @Test("Set-Cookie reaches the client of the completing request only, and is not stored")
    func cookies() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
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
        let origin = try ScriptedServer.origin { _, connection in
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
        let origin = try ScriptedServer.origin { _, connection in
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

    private static func respond(_ body: [UInt8], _ framing: String, _ connection: Reply) throws {
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
        let origin = try ScriptedServer.origin { _, connection in
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
        let origin = try ScriptedServer.origin { _, connection in
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

    @Test("interim responses of the origin do not end the request for the upload")
    func interim() throws {
        let origin = try ScriptedServer.origin { request, connection in
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
        let origin = try ScriptedServer.origin { _, connection in
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
        let origin = try ScriptedServer.origin { _, connection in
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
        let origin = try ScriptedServer.origin { request, connection in
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
