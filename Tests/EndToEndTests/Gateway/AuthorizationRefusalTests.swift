import ConformanceKit
import SystemCalls
import TestSupport
import Testing

private typealias Application = AuthorizingApplication

/// Decisions that are refusals or not valid, and requests without a decision.
@Suite("Gateway: requests that an application does not allow", .blocking)
struct GatewayAuthorizationRefusalTests {
    // MARK: Decisions that are not valid

    @Test(
        "a permission without a valid principal or with malformed limits is none",
        arguments: [
            [], [("Onward-Principal", "")], [("Onward-Principal", "a b")], [("Onward-Principal", "anna\tberta")],
            [("Onward-Principal", "anonymous")], [("Onward-Principal", "\u{E4}nna")],
            [("Onward-Principal", String(repeating: "x", count: 256))],
            [("Onward-Principal", "anna"), ("Onward-Principal", "berta")], [("Onward_Principal", "anna")],
            [("Onward-Principal", "anna"), ("Upload-Limit", "max-size=-1")],
            [("Onward-Principal", "anna"), ("Upload-Limit", "max-size=1.5")],
            [("Onward-Principal", "anna"), ("Upload-Limit", "max-size=many")],
            [("Onward-Principal", "anna"), ("Upload-Limit", "max-size")],
            [("Onward-Principal", "anna"), ("Upload-Limit", "100 bytes")],
        ])
    func invalid(fields: [(String, String)]) throws {
        let application = try Application(Application.always("200 OK", fields + [("Cache-Control", "max-age=60")]))
        try application.withServer { server in
            for request in [
                Request.get("/app/x"), Request("PUT", "/files/x", [], .bytes([1])), .retrieval(.v8, "/uploads/x"),
                .creation(.v8, "PUT", "/app/x", complete: false, .bytes([1])),
            ] {
                let response = try server.exchange(request)
                if request.method != "HEAD" { expectUndecided(response, "authorization-invalid") }
                #expect(response.status == 503, "\(response)")
            }
            #expect(application.served.isEmpty && server.publishedNames().isEmpty)
            // The next request is decided again.
            application.decide(Application.byUser())
            #expect(try server.exchange(Request.get("/app/x").by("anna")).status == 201)
        }
    }

    @Test("a principal can have all visible characters, and 255 bytes")
    func principals() throws {
        let application = try Application()
        try application.withServer { (server) throws in
            for name in [
                String(repeating: "x", count: 255), "anna@app.example", "42", "!\"#$%&'()*+,-./:;<=>?[\\]^_`{|}~",
            ] {
                application.decide(Application.always("204 No Content", [("onward-principal", "  \(name) ")], ""))
                #expect(try server.exchange(.get("/app/x")).status == 201)
                #expect(application.served.last?.fields.values("Onward-Principal") == [name])
            }
        }
    }

    // MARK: Refusals

    @Test(
        "a refusal is passed on as it is",
        arguments: [
            "400 Bad", "401 Unauthorized", "402 Pay", "403 Forbidden", "404 Not Found", "410 Gone", "429 Slow",
            "451 No",
        ])
    func refusals(status: String) throws {
        let fields = [
            ("WWW-Authenticate", "Digest realm=\"a, b\", nonce=\"x\""), ("WWW-Authenticate", "Basic realm=\"app\""),
            ("Content-Type", "text/html; charset=utf-8"), ("Retry-After", "77"), ("X-Reason", "one"),
            ("X-Reason", "two"),
            ("Cache-Control", "private, no-store"), ("Set-Cookie", "a=b"), ("Connection", "X-Private"),
            ("X-Private", "hop"),
        ]
        let content = String(repeating: "0123456789abcdef", count: 4096)
        let application = try Application(Application.always(status, fields, content))
        try application.withServer { server in
            for request in [
                Request.get("/app/x"), .get("/files/x"), Request("POST", "/app/x", [], .bytes(Payload.bytes(1000))),
                Request("PUT", "/files/x", [], .chunks([Payload.bytes(1000)])), Request("DELETE", "/files/x"),
                .creation(.v8, "PUT", "/app/x", complete: false, .bytes([1])),
                .creation(.v3, "PUT", "/files/x", complete: true, .bytes([1])), .retrieval(.v8, "/uploads/x"),
                .append(.v8, "/uploads/x", at: 0, complete: true, .bytes([1])), .cancellation(.v8, "/uploads/x"),
            ] {
                let response = try server.exchange(request)
                #expect(String(response.status) == status.prefix(3), "\(response)")
                for (name, _) in fields where !["Connection", "X-Private"].contains(name) {
                    let expected = fields.filter { $0.0 == name }.map(\.1)
                    #expect(response.fields.values(name) == expected, "\(name) \(response)")
                }
                #expect(!response.fields.contains("X-Private"))
                #expect(response.fields.values("Content-Length") == ["65536"])
                if request.method != "HEAD" { #expect(response.text == content, "\(request.method)") }
            }
            #expect(application.served.isEmpty && server.publishedNames().isEmpty)
        }
    }

    @Test("a refusal can be chunked, or end with its connection; more than 64 KiB of content is not valid")
    func refusalContent() throws {
        let application = try Application()
        try application.withServer { server in
            application.decide { _, connection in
                try connection.send("HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nnope\r\n0\r\n\r\n")
            }
            #expect(try server.exchange(.get("/app/x")).text == "nope")
            application.decide { _, connection in
                try connection.send("HTTP/1.1 403 No\r\nConnection: close\r\n\r\nnever")
                connection.endOutput()
            }
            #expect(try server.exchange(.get("/app/x")).text == "never")
            application.decide(Application.always("403 No", [], String(repeating: "x", count: 65_537)))
            expectUndecided(try server.exchange(.get("/app/x")), "authorization-invalid")
            #expect(application.served.isEmpty)
        }
    }

    // MARK: No decision

    @Test("without a decision nothing is served, and bytes of uploads stay")
    func unavailable() throws {
        let application = try Application()
        let deadEnds: [(String, Application.Decision)] = [
            ("301", Application.always("301 Moved", [("Location", "/allowed")])),
            ("302", Application.always("302 Found", [("Location", "\(application.origin.url)/allowed")])),
            ("304", { _, connection in try connection.send("HTTP/1.1 304 Not Modified\r\n\r\n") }),
            ("500", Application.always("500 Oops", [("Onward-Principal", "anna")])),
            ("502", Application.always("502 Oops")), ("503", Application.always("503 Later", [("Retry-After", "99")])),
            ("600", Application.always("600 What", [("Onward-Principal", "anna")])),
            ("closed", { _, connection in connection.close() }), ("reset", { _, connection in connection.reset() }),
            (
                "cut head",
                { _, connection in
                    try connection.send("HTTP/1.1 200 OK\r\nOnward-Principal: anna\r\n")
                    connection.close()
                }
            ),
            (
                "cut refusal",
                { _, connection in
                    try connection.send("HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\nno")
                    connection.close()
                }
            ),
            (
                "cut chunks",
                { _, connection in
                    try connection.send("HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nno")
                    connection.close()
                }
            ),
            (
                "not HTTP",
                { _, connection in
                    try connection.send("220 ready\r\n\r\n")
                    connection.close()
                }
            ),
        ]
        try application.withServer { server in
            let file = try server.begin(by: "anna", "/files/x", Payload.bytes(1000))
            let forwarded = try server.begin(by: "anna", "/app/x", Payload.bytes(1000))
            func expectNothing(_ name: String) throws {
                for request in [
                    Request.get("/app/x"), .get("/files/x"), Request("PUT", "/files/x", [], .bytes([1])),
                    .append(.v8, file, at: 1000, complete: true, .bytes([1])),
                    .append(.v8, forwarded, at: 1000, complete: true, .bytes([1])), .cancellation(.v8, file),
                ] {
                    let response = try server.exchange(request.by("anna"))
                    #expect(response.problem?.code == "authorization-unavailable", "\(name): \(response)")
                    #expect(response.status == 503 && response.value("Retry-After") == "5", "\(name): \(response)")
                }
                #expect(try server.exchange(Request.retrieval(.v8, file).by("anna")).status == 503, "\(name)")
                #expect(application.served.isEmpty && server.publishedNames().isEmpty, "\(name)")
            }
            for (name, decision) in deadEnds {
                application.decide(decision)
                try expectNothing(name)
            }
            application.origin.stop()
            try expectNothing("dead")
            application.decide(Application.byUser())
            try application.origin.restart()
            for location in [file, forwarded] {
                #expect(try server.exchange(Request.retrieval(.v8, location).by("anna")).offset == 1000)
                let last = Request.append(.v8, location, at: 1000, complete: true, .bytes([1])).by("anna")
                #expect(try server.exchange(last).status == 201)
            }
            #expect(server.published("x") == Payload.bytes(1000) + [1])
            #expect(application.served.map(\.content) == [Payload.bytes(1000) + [1]])
        }
    }

    @Test("an application that does not respond within 10 seconds has not decided")
    func timeout() throws {
        let hold = Hold()
        defer { hold.release() }
        let application = try Application { request, connection in
            // Neither a decision without a head, nor one whose content does not end.
            if request.fields["Onward-Target"] == "/app/cut" {
                try connection.send("HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\nno")
            }
            hold.wait()
            try connection.respond("200 OK", [("Onward-Principal", "anna")])
        }
        try application.withServer { server in
            let connections = try ["/app/x", "/app/cut", "/files/x"].map { path in
                let connection = try server.connect()
                try connection.send(Request.get(path))
                return connection
            }
            for connection in connections {
                expectUndecided(try connection.readResponse(), "authorization-unavailable")
            }
            #expect(application.served.isEmpty)
        }
    }

    @Test("the content of a permission is not awaited")
    func endlessPermission() throws {
        let hold = Hold()
        defer { hold.release() }
        let application = try Application { _, connection in
            try connection.send("HTTP/1.1 200 OK\r\nOnward-Principal: anna\r\nContent-Length: 100\r\n\r\nx")
            hold.wait()
            connection.close()
        }
        try application.withServer { (server) throws in
            #expect(try server.exchange(.get("/app/x"), within: .seconds(8)).status == 201)
        }
    }
}
