import ConformanceKit
import HTTPSemantics
import SystemCalls
import TestSupport
import Testing

/// Tests the changes that a gateway makes in requests that do not use the upload protocol (RFC 9110 section 7.6).
@Suite("The gateway as a proxy: requests", .serialized, .blocking)
struct GatewayProxyFieldTests {
    private static func origin(
        _ fields: [(String, String)] = [], content: String = "ok"
    ) throws -> ScriptedServer {
        try ScriptedServer.origin { _, connection in try connection.respond("200 OK", fields, content) }
    }

    @Test("method, target and fields of a request arrive unchanged")
    func requestHead() throws {
        let origin = try Self.origin()
        try withGateway(to: origin) { server in
            let targets = [
                "/app", "/app/", "/app/a%20b/%7E/%c3%a4", "/app/x?", "/app/x?a=1&b=%2F%2e&c=a+b", "/app/x/;p=1",
                "/app/x?q=/../..", "/app/x?_=\"'<>|{}", "/app/*!$&'(),:@=~", "/app//x/;p=1", "/app/a%2Fb", "/app/x//",
                "/app/" + String(repeating: "y", count: 5000), "/app" + String(repeating: "/z", count: 200),
            ]
            for target in targets {
                let response = try server.exchange(
                    Request(
                        "GET", target,
                        [
                            ("Accept", "*/*;q=0.1"), ("X-Custom-Field", "a,  b\t c"), ("x-lower", "1"),
                            ("X-Custom-Field", "second"), ("Cookie", "a=b; c=\"d\""), ("X-Empty", ""),
                            ("Idempotency-Key", "\"k\""), ("If-None-Match", "W/\"x\""), ("Range", "bytes=0-1"),
                        ]))
                #expect(response.status == 200, "\(target): \(response)")
                let request = try #require(origin.requests.last)
                #expect(request.method == "GET" && request.target == target)
                let expected = [
                    "Accept: */*;q=0.1", "X-Custom-Field: a,  b\t c", "x-lower: 1", "X-Custom-Field: second",
                    "Cookie: a=b; c=\"d\"", "Idempotency-Key: \"k\"", "If-None-Match: W/\"x\"", "Range: bytes=0-1",
                ]
                #expect(request.lines.filter(expected.contains) == expected, "\(request.text)")
                #expect(request.fields.values("X-Empty") == [""])
                #expect(request.fields.values("Host") == [server.authority])
                let added = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "via", "host"]
                let names = Set(request.fields.map { $0.name.lowercased() })
                #expect(
                    names.subtracting(added) == [
                        "accept", "x-custom-field", "x-lower", "cookie", "x-empty", "idempotency-key", "if-none-match",
                        "range",
                    ])
            }
            let absolute = try server.exchange(.get("http://\(server.authority)/app/absolute?x=1"))
            #expect(absolute.status == 200 && origin.requests.last?.target == "/app/absolute?x=1")
            #expect(origin.malformed == [])
        }
    }

    @Test("a path that leads out of the route for some recipients does not reach the origin")
    func pathsOutOfTheRoute() throws {
        let origin = try Self.origin()
        try withGateway(to: origin) { server in
            for target in [
                "/app/..", "/app/../x", "/app/a/../../x", "/app/%2e%2e/x", "/app/.%2E/x", "/app/..%2fx", "/app/%2e/x",
                "/app%2f..%2fx", "/application", "/App", "//app/x", "/x/../app", "/app//../x", "/app/a%2f%2e%2e%2fb",
                "/app/..%5cx", "/app/a%00", "/app/%c0%ae", "/app%2fx",
            ] {
                let response = try server.exchange(.get(target))
                #expect((400..<500).contains(response.status), "\(target): \(response)")
            }
            // A path with an empty segment can be forwarded, but not stored with an upload.
            let upload = try server.exchange(.creation(.v8, "POST", "/app//x", complete: true, .bytes([1])))
            #expect(upload.status == 400, "\(upload)")
            #expect(origin.requests.isEmpty, "\(origin.requests.map(\.target))")
        }
    }

    @Test("any method is forwarded, with the content that it has")
    func methods() throws {
        let origin = try Self.origin()
        try withGateway(to: origin) { server in
            let connection = try server.connect()
            for method in ["DELETE", "OPTIONS", "PROPFIND", "PATCH", "POST", "get", "M-SEARCH", "!#$%&'*+-.^_`|~"] {
                for content in [Request.Content.none, .bytes([]), .bytes(Array("abc".utf8))] {
                    let response = try connection.exchange(Request(method, "/app/m", [], content))
                    #expect(response.status == 200 && response.text == "ok", "\(method): \(response)")
                    let request = try #require(origin.requests.last)
                    #expect(request.method == method && request.content == content.expected)
                    let length: [String] = if case .bytes(let bytes) = content { ["\(bytes.count)"] } else { [] }
                    #expect(request.fields.values("Content-Length") == length, "\(request.text)")
                }
            }
            #expect(origin.malformed == [])
        }
    }

    @Test("content arrives unchanged, with a length or in chunks", arguments: [0, 1, 100_000, 10 << 20])
    func content(count: Int) throws {
        let origin = try Self.origin()
        try withGateway(to: origin) { server in
            let bytes = Payload.bytes(count)
            let connection = try server.connect()
            #expect(try connection.exchange(Request("POST", "/app/l", [], .bytes(bytes))).status == 200)
            let sized = try #require(origin.requests.last)
            #expect(sized.content == bytes && sized.fields["Content-Length"] == "\(count)")
            let chunks = stride(from: 0, to: count, by: 70_001).map { Array(bytes[$0..<min($0 + 70_001, count)]) }
            #expect(try connection.exchange(Request("PUT", "/app/c", [], .chunks(chunks))).status == 200)
            let chunked = try #require(origin.requests.last)
            #expect(chunked.content == bytes && chunked.isComplete)
            #expect(chunked.fields["Transfer-Encoding"] == "chunked" && !chunked.fields.contains("Content-Length"))
            #expect(origin.malformed == [])
        }
    }

    @Test("fields for one connection are removed from requests, in every spelling (RFC 9110 section 7.6.1)")
    func hopByHopRequest() throws {
        let origin = try Self.origin()
        try withGateway(to: origin) { server in
            let cases: [[(String, String)]] = [
                [("Connection", "X-Hop"), ("X-Hop", "1")],
                [("connection", "x-hop, Keep-Alive"), ("X-HOP", "1"), ("Keep-Alive", "timeout=5")],
                [("Connection", "keep-alive"), ("CONNECTION", ",\t X-Hop ,,"), ("x-Hop", "1")],
                [("Connection", "X-Hop\t"), ("X-Hop", "1"), ("X-Hop", "2")],
                [("Connection", " close ,X-Hop"), ("X-Hop", "1")],
                [("TE", "trailers, deflate;q=0.5"), ("Connection", "TE, X-Hop"), ("X-Hop", "1")],
                [("Trailer", "X-Hop"), ("Proxy-Connection", "keep-alive"), ("proxy-authorization", "Basic eA==")],
                [("Keep-Alive", "300"), ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA")],
                [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AA")],
            ]
            for fields in cases {
                let response = try server.exchange(Request("GET", "/app/hop", fields + [("X-Kept", "1")]))
                #expect(response.status == 200, "\(fields)")
                let request = try #require(origin.requests.last)
                #expect(request.fields["X-Kept"] == "1")
                for name in [
                    "X-Hop", "TE", "Trailer", "Proxy-Connection", "Proxy-Authorization", "Keep-Alive", "Upgrade",
                    "HTTP2-Settings", "Connection",
                ] { #expect(!request.fields.contains(name), "\(name) of \(fields)") }
            }
        }
    }

    @Test("fields by which the server itself speaks to the origin never arrive from a client, in any spelling")
    func reservedFields() throws {
        let origin = try Self.origin()
        try withGateway(to: origin) { server in
            for name in [
                "Onward-Principal", "ONWARD-PRINCIPAL", "onward-path", "Onward-", "oNwArD-Digest", "Onward-X-Y",
                "Onward_Principal", "ONWARD_PATH", "Content_Length", "Transfer_Encoding", "X_Forwarded_For", "_", "a_b",
                "Onward-Forwarded_For", "Host_", "Forwarded_",
            ] {
                let response = try server.exchange(Request("POST", "/app/r", [(name, "forged"), ("X-Kept", "1")]))
                #expect(response.status == 200, "\(name)")
                let request = try #require(origin.requests.last)
                #expect(!request.text.contains("forged") && request.fields["X-Kept"] == "1", "\(request.text)")
            }
            // A name that an origin could read as one of the reserved names is not a token.
            for line in ["Onward-Path : forged", "Onward-Path\t: forged", "X: 1\r\n Onward-Path: forged"] {
                let connection = try server.connect()
                try connection.send("GET /app/r HTTP/1.1\r\nHost: localhost\r\n\(line)\r\n\r\n")
                #expect(try connection.readResponse().status == 400)
            }
            #expect(!origin.requests.contains { $0.text.contains("forged") })
        }
    }

    @Test("the gateway adds itself to Via, and to the forwarding fields of a trusted peer")
    func forwardingFields() throws {
        let origin = try Self.origin()
        try withGateway(to: origin) { server in
            _ = try server.exchange(Request("GET", "/app/f", [("Host", "app.example:8080")]))
            let plain = try #require(origin.requests.last).fields
            #expect(plain.values("Host") == ["app.example:8080"])
            #expect(plain.values("X-Forwarded-For") == ["127.0.0.1"])
            #expect(plain.values("X-Forwarded-Proto") == ["http"])
            #expect(plain.values("X-Forwarded-Host") == ["app.example:8080"])
            #expect(plain.values("Forwarded") == ["for=127.0.0.1;host=\"app.example:8080\";proto=http"])
            #expect(plain.values("Via") == ["1.1 onward"])
            // The loopback addresses are trusted.
            _ = try server.exchange(
                Request(
                    "GET", "/app/f",
                    [
                        ("X-Forwarded-For", "192.0.2.1"), ("x-forwarded-for", "192.0.2.2"), ("Via", "1.0 a"),
                        ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "public.example"), ("Via", "1.1 b (c)"),
                        ("Forwarded", "for=192.0.2.1;proto=https"), ("X-Forwarded-Server", "x"),
                    ]))
            let trusted = try #require(origin.requests.last).fields
            #expect(trusted.values("X-Forwarded-For") == ["192.0.2.1, 192.0.2.2, 127.0.0.1"])
            #expect(trusted.values("X-Forwarded-Proto") == ["https"])
            #expect(trusted.values("X-Forwarded-Host") == ["public.example"])
            #expect(trusted.values("Via") == ["1.0 a, 1.1 b (c), 1.1 onward"])
            #expect(trusted.values("Forwarded").count == 1)
            #expect(trusted["Forwarded"]?.hasPrefix("for=192.0.2.1;proto=https, for=127.0.0.1;") == true)
            #expect(!trusted.contains("X-Forwarded-Server"))
        }
    }

    @Test("requests for other protocols, tunnels and TRACE get 501 and do not reach the origin; h2c is ignored")
    func refusedRequests() throws {
        let origin = try Self.origin()
        try withGateway(to: origin) { server in
            let upgrades: [[(String, String)]] = [
                [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13")],
                [("connection", "keep-alive, uPgRaDe"), ("Upgrade", "WebSocket")],
                [("Connection", "upgrade"), ("Upgrade", "h2c"), ("Upgrade", "websocket")],
                [("Connection", "upgrade"), ("Upgrade", "h2c, websocket")],
            ]
            for fields in upgrades {
                let response = try server.exchange(Request("GET", "/app/ws", fields))
                #expect(response.status == 501 && response.problem?.code == "upgrade-unsupported", "\(fields)")
            }
            let trace = try server.exchange(Request("TRACE", "/app/t"))
            #expect(trace.status == 501 && trace.problem?.code == "trace-unsupported")
            for target in ["/app/c", "localhost:80", "/app"] {
                let response = try server.exchange(Request("CONNECT", target))
                #expect(target.hasPrefix("/") ? response.status == 501 : [400, 501].contains(response.status))
            }
            #expect(origin.requests.isEmpty && origin.connections == 0)
            let ignored = try server.exchange(
                Request("GET", "/app/h2c", [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c")]))
            #expect(ignored.status == 200)
            // Without the option in Connection, Upgrade has no meaning.
            #expect(try server.exchange(Request("GET", "/app/u", [("Upgrade", "websocket")])).status == 200)
        }
    }

    @Test("OPTIONS with Max-Forwards is answered or forwarded with a smaller number (RFC 9110 section 7.6.2)")
    func maxForwards() throws {
        let origin = try Self.origin()
        try withGateway(to: origin) { (server) throws in
            #expect(try server.exchange(Request("OPTIONS", "/app/o", [("Max-Forwards", "0")])).status == 204)
            #expect(origin.requests.isEmpty)
            #expect(try server.exchange(Request("OPTIONS", "/app/o", [("max-forwards", "7")])).status == 200)
            #expect(origin.requests.last?.fields.values("Max-Forwards") == ["6"])
            #expect(try server.exchange(Request("GET", "/app/o", [("Max-Forwards", "0")])).status == 200)
            #expect(origin.requests.last?.fields.values("Max-Forwards") == ["0"])
        }
    }
}

extension Request.Content {
    /// The content without its framing.
    fileprivate var expected: [UInt8] { if case .bytes(let bytes) = self { bytes } else { [] } }
}
