import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// Tests the changes that a gateway makes in responses to requests that do not use the upload protocol (RFC 9110
/// section 7.6).
@Suite("The gateway as a proxy: responses", .serialized, .blocking)
struct GatewayProxyResponseTests {
    @Test("status, fields and content of a response arrive unchanged, whatever its framing")
    func responses() throws {
        let bytes = Payload.bytes(300_000)
        let origin = try ScriptedServer.origin { request, connection in
            let path = request.path
            let head = "HTTP/1.1 200 OK\r\nX-Framing: \(path)\r\nSet-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\n"
            try connection.discardContent()
            switch path {
            case "/app/length": try connection.send(Array((head + "Content-Length: 300000\r\n\r\n").utf8) + bytes)
            case "/app/chunked":
                try connection.send(head + "Transfer-Encoding: Chunked\r\nTrailer: X-T\r\n\r\n")
                for start in stride(from: 0, to: bytes.count, by: 40_000) {
                    try connection.send(
                        ConformanceKit.Request.chunk(Array(bytes[start..<min(start + 40_000, 300_000)])))
                }
                try connection.send("0;ext=1\r\nX-T: 1\r\n\r\n")
            case "/app/close":
                try connection.send(Array((head + "Connection: close\r\n\r\n").utf8) + bytes)
                connection.endOutput()
            case "/app/http10":
                try connection.send(Array((head.replacing("/1.1", with: "/1.0") + "\r\n").utf8) + bytes)
                connection.endOutput()
            default: try connection.respond("404 Not Found")
            }
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            for path in ["/app/length", "/app/chunked", "/app/close", "/app/http10", "/app/length"] {
                let response = try connection.exchange(.get(path))
                #expect(response.status == 200 && response.content == bytes, "\(path)")
                #expect(response.value("X-Framing") == path)
                #expect(response.fields.values("Set-Cookie") == ["a=1; Path=/", "b=2"])
                #expect(response.fields.values("Content-Length") == (path == "/app/length" ? ["300000"] : []))
                #expect(!response.fields.contains("Trailer"))
                #expect(response.fields.values("Date").count == 1)
            }
            // HTTP/1.0 has no chunks: the connection ends with the content.
            var old = Request.get("/app/chunked")
            old.version = "HTTP/1.0"
            let response = try server.exchange(old)
            #expect(response.content == bytes && response.isConnectionEnded)
        }
    }

    @Test("responses without content stay without content, and the connection can be reused")
    func withoutContent() throws {
        let origin = try ScriptedServer.origin { request, connection in
            // A response before the end of the content would end the connection.
            try connection.discardContent()
            switch request.path {
            case "/app/204": try connection.send("HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n")
            case "/app/304/unknown": try connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n")
            case "/app/304":
                try connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 9\r\n\r\n")
            case "/app/head": try connection.send("HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nX-A: 1\r\n\r\n")
            case "/app/headchunked":
                try connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n")
            case "/app/empty": try connection.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            case "/app/201":
                try connection.send("HTTP/1.1 201 Created\r\nLocation: /app/x\r\nContent-Length: 0\r\n\r\n")
            default: try connection.respond()
            }
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            let none = try connection.exchange(.get("/app/204"))
            #expect(none.status == 204 && none.value("X-A") == "1")
            let unchanged = try connection.exchange(.get("/app/304"))
            #expect(unchanged.status == 304 && unchanged.value("ETag") == "\"x\"" && unchanged.content.isEmpty)
            #expect(unchanged.value("Content-Length") == "9")
            let lengthless = try connection.exchange(.get("/app/304/unknown"))
            #expect(lengthless.status == 304 && lengthless.content.isEmpty, "\(lengthless)")
            let head = try connection.exchange(Request("HEAD", "/app/head"))
            #expect(head.status == 200 && head.value("Content-Length") == "12345" && head.value("X-A") == "1")
            #expect(try connection.exchange(.get("/app/empty")).status == 200)
            let created = try connection.exchange(Request("POST", "/app/201", [], .bytes([1])))
            #expect(created.status == 201 && created.value("Location") == "/app/x")
            #expect(try connection.exchange(Request("HEAD", "/app/head", [], .bytes([1, 2]))).status == 200)
            #expect(try server.exchange(Request("HEAD", "/app/headchunked")).status == 200)
            #expect(try connection.exchange(.get("/app/last")).text == "ok")
            try CheckFixture.expectLog(server, " GET /app/304 304 in=0 out=0 ")
        }
    }

    @Test("fields for one connection are removed from responses, in every spelling")
    func hopByHopResponse() throws {
        let cases: [[String]] = [
            ["Connection: X-Hop", "X-Hop: 1"], ["connection: x-hop, keep-alive", "X-HOP: 1", "Keep-Alive: timeout=5"],
            ["Connection: keep-alive", "CONNECTION: ,\tX-Hop,,", "x-hop: 1"],
            ["Upgrade: h2c", "Trailer: X-A", "Proxy-Connection: close", "TE: x"],
            ["Proxy-Authenticate: Basic realm=\"x\"", "Proxy-Authentication-Info: x"],
        ]
        let origin = try ScriptedServer.origin { request, connection in
            let lines = cases[Int(request.path.dropFirst(5)) ?? 0].joined(separator: "\r\n")
            try connection.send("HTTP/1.1 200 OK\r\n\(lines)\r\nX-Kept: 1\r\nContent-Length: 2\r\n\r\nok")
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            for number in cases.indices {
                let response = try connection.exchange(.get("/app/\(number)"))
                #expect(response.text == "ok" && response.value("X-Kept") == "1")
                let names = Set(response.fields.map { $0.name.lowercased() })
                #expect(
                    names.isSubset(of: ["x-kept", "content-length", "date"]), "\(cases[number]): \(response.fields)")
            }
        }
    }

    @Test("interim responses are forwarded; a response with 101 is refused")
    func interimResponses() throws {
        let origin = try ScriptedServer.origin { request, connection in
            if request.path == "/app/101" {
                try connection.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
                _ = connection.awaitClosing(within: .seconds(30))
                return connection.close()
            }
            try connection.send(
                "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n")
            try connection.send("HTTP/1.1 102 Processing\r\n\r\n")
            try connection.respond()
        }
        try withGateway(to: origin) { server in
            let response = try server.exchange(.get("/app/103"))
            #expect(response.status == 200 && response.interim.map(\.status) == [103, 102])
            #expect(response.interim[0].fields["Link"] == "</a.css>; rel=preload")
            #expect(!response.interim[0].fields.contains("X-Hop"))
            let old = try server.connect()
            try old.send("GET /app/103 HTTP/1.0\r\nHost: localhost\r\n\r\n")
            let plain = try old.readResponse(to: "GET")
            #expect(plain.status == 200 && plain.interim.isEmpty)
            let switched = try server.exchange(.get("/app/101"))
            #expect(switched.status == 502 && switched.problem?.code == "origin-response-invalid")
        }
    }

    @Test("an application on a Unix socket gets requests, too")
    func unixSocket() throws {
        let directory = try TemporaryDirectory()
        let origin = try ScriptedServer.origin(unixPath: directory.path + "/app.sock") { _, connection in
            try connection.respond()
        }
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            #expect(try connection.exchange(.get("/app/a?b")).text == "ok")
            #expect(try connection.exchange(Request("POST", "/app/c", [], .bytes([1, 2, 3]))).text == "ok")
            #expect(origin.requests.map(\.target) == ["/app/a?b", "/app/c"])
            #expect(origin.requests.last?.content == [1, 2, 3])
            origin.stop()
            let response = try connection.exchange(.get("/app/d"))
            #expect(response.status == 502 && response.problem?.code == "origin-unreachable")
        }
    }
}
