import ConformanceKit
import SystemCalls
import TestSupport
import Testing

/// Tests the limits of uploads for requests that do not use the upload protocol, and the announcement of the limits.
@Suite("The gateway as a proxy: limits", .blocking)
struct GatewayLimitTests {
    @Test("a request whose declared length exceeds --max-size gets 413, and nothing of it is sent to the origin")
    func declared() throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        try withGateway(to: origin, options: ["--max-size", "1000"]) { server in
            for method in ["POST", "PUT", "PATCH", "DELETE", "REPORT"] {
                let response = try server.exchange(Request(method, "/app/x", [], .bytes(Payload.bytes(1001))))
                #expect(
                    response.status == 413 && response.problem?.code == "upload-too-large", "\(method): \(response)")
                #expect(response.limits?["max-size"] == 1000, "\(method): \(response)")
            }
            // The client that waits for 100 gets the final response instead.
            let waiting = try server.connect()
            try waiting.send(Request("POST", "/app/x", [("Expect", "100-continue")], .declared(1001)))
            let refused = try waiting.readResponse()
            #expect(refused.status == 413 && refused.interim.isEmpty, "\(refused)")
            #expect(origin.requests.isEmpty && origin.connections == 0)

            let largest = try server.exchange(Request("POST", "/app/x", [], .bytes(Payload.bytes(1000))))
            #expect(largest.status == 200 && origin.requests.last?.contentCount == 1000)
        }
    }

    @Test(
        "chunked content is cut at --max-size: the client gets 413, and the origin gets no end of the request")
    func chunked() throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        try withGateway(to: origin, options: ["--max-size", "100000"]) { server in
            let chunks = (0..<4).map { Payload.bytes(30_000, seed: UInt64($0)) }
            let response = try server.exchange(Request("POST", "/app/large", [], .chunks(chunks)))
            #expect(response.status == 413 && response.problem?.code == "upload-too-large", "\(response)")
            #expect(response.limits?["max-size"] == 100_000 && response.value("Connection") == "close", "\(response)")
            #expect(origin.awaitNoConnection())
            #expect(origin.requests.count <= 1 && origin.requests.last?.isComplete != true)
            #expect(origin.requests.last.map { $0.contentCount <= 100_000 } != false)
            let smaller = try server.exchange(
                Request("POST", "/app/small", [], .chunks(Array(chunks[..<3]) + [Payload.bytes(10_000)])))
            #expect(smaller.status == 200 && origin.requests.last?.contentCount == 100_000)
            #expect(origin.malformed == [])
        }
    }

    @Test("the limit of the application that authorizes applies, too")
    func authorized() throws {
        let application = try AuthorizingApplication(AuthorizingApplication.byUser([("Upload-Limit", "max-size=100")]))
        try application.withServer("--max-size", "1000") { server in
            let large = Request("POST", "/app/x", [], .bytes(Payload.bytes(101))).by("anna")
            let response = try server.exchange(large)
            #expect(response.status == 413 && response.limits?["max-size"] == 100, "\(response)")
            #expect(application.served.isEmpty)
            let small = Request("POST", "/app/x", [], .bytes(Payload.bytes(100))).by("anna")
            #expect(try server.exchange(small).status == 201)
        }
    }

    @Test("every response to OPTIONS announces the limits of uploads, whatever the origin responds")
    func announced() throws {
        let origin = try ScriptedServer.origin { request, connection in
            switch request.path {
            case "/app/204": try connection.send("HTTP/1.1 204 No Content\r\nAllow: GET\r\n\r\n")
            case "/app/405": try connection.respond("405 No", [("Allow", "POST")])
            case "/app/own": try connection.respond("200 OK", [("Upload-Limit", "max-size=5")])
            case "/app/lost":
                try connection.discardContent()
                connection.close()
            default: try connection.respond("200 OK", [("Allow", "POST, OPTIONS")])
            }
        }
        try withGateway(to: origin, options: ["--max-size", "1000", "--max-append-size", "500"]) { server in
            let connection = try server.connect()
            let statuses = [("/app/x", 200), ("/app/204", 204), ("/app/405", 405), ("/app", 200), ("/app/lost", 502)]
            for (path, status) in statuses {
                let response = try connection.exchange(Request("OPTIONS", path))
                #expect(response.status == status, "\(path): \(response)")
                #expect(
                    response.limits?["max-size"] == 1000 && response.limits?["max-append-size"] == 500, "\(response)")
                #expect(response.fields.values("Upload-Limit").count == 1)
            }
            #expect(try connection.exchange(Request("OPTIONS", "/app/x")).value("Allow") == "POST, OPTIONS")
            #expect(try connection.exchange(Request("OPTIONS", "/app/own")).limits == ["max-size": 5])
            let answered = try connection.exchange(Request("OPTIONS", "/app/x", [("Max-Forwards", "0")]))
            #expect(answered.status == 204 && answered.limits?["max-size"] == 1000, "\(answered)")
            for method in ["GET", "HEAD", "POST"] {
                #expect(!(try connection.exchange(Request(method, "/app/x")).fields.contains("Upload-Limit")))
            }
            origin.stop()
            let absent = try connection.exchange(Request("OPTIONS", "/app/x"))
            #expect(absent.status == 502 && absent.limits?["max-size"] == 1000, "\(absent)")
        }
    }

    @Test("without --max-size, OPTIONS announces the lifetime of uploads only, and no content is refused")
    func unlimited() throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        try withGateway(to: origin) { server in
            let limits = try server.exchange(Request("OPTIONS", "/app/x")).limits
            #expect(limits?["max-age"] == 604_800 && limits?["max-size"] == nil)
            #expect(try server.exchange(Request("POST", "/app/x", [], .bytes(Payload.bytes(2 << 20)))).status == 200)
        }
    }

    @Test("a client that may not use the route does not get its limits")
    func refused() throws {
        let origin = try ScriptedServer.origin { _, connection in try connection.respond() }
        let fixture = try TokenFixture("anna anna-secret-token-0123456789", ["--route", "/app=\(origin.url)"])
        let response = try fixture.server.exchange(Request("OPTIONS", "/app/x"))
        #expect(response.status == 401 && !response.fields.contains("Upload-Limit"), "\(response)")
    }
}
