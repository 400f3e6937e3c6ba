import ConformanceKit
import SystemCalls
import TestSupport
import Testing

private typealias Application = AuthorizingApplication

/// What an application is shown of requests, and what its decision means.
@Suite("Gateway: authorization by an application", .blocking)
struct GatewayAuthorizationTests {
    /// One request of each kind, with the path of the upload `location`.
    private static func requests(of location: String, at offset: Int) -> [Request] {
        [
            .retrieval(.v8, location), .retrieval(.v8, location, "GET"), Request("OPTIONS", location),
            .append(.v8, location, at: offset, complete: false, .bytes([])), .cancellation(.v8, location),
        ]
    }

    // MARK: What is shown

    @Test("the application is shown method, target, fields and length of a request, and not its content")
    func shown() throws {
        let application = try Application()
        let origin = application.origin
        try withServer(
            options: ["--route", "/app=\(origin.url)", "--auth-url", "\(origin.url)/auth?key=a%20b"]
        ) { server in
            let sent = [
                ("Authorization", Request.credentials(of: "anna")), ("Cookie", "session=cookie-0123456789"),
                ("X-API-Key", "key-0123456789abcdef"), ("X-Custom", "one"), ("X-Custom", "two"),
                ("Accept", "text/plain"),
            ]
            let forged = [
                ("Onward-Principal", "mallory"), ("onward-method", "HEAD"), ("ONWARD-TARGET", "/public"),
                ("Onward-Host", "other.example"), ("Onward-Length", "1"), ("Onward_Principal", "mallory"),
                ("Onward_Target", "/public"), ("X-Forwarded-User", "mallory"), ("X-Forwarded-For", "10.0.0.1"),
                ("Forwarded", "for=10.0.0.1"), ("Connection", "X-Hop, Onward-Method"), ("X-Hop", "1"),
                ("Proxy-Authorization", "Basic bWFsbG9yeTptYWxsb3J5"), ("TE", "trailers"), ("Range", "bytes=0-1"),
                ("If-None-Match", "\"x\""), ("If-Match", "\"x\""), ("If-Range", "\"x\""),
            ]
            let target = "/app/a%20b?c=d&e=%2F"
            let response = try server.exchange(Request("POST", target, sent + forged, .bytes(Payload.bytes(1000))))
            #expect(response.status == 201)
            let request = try #require(application.asked.first)
            let note = Comment(rawValue: request.text)
            #expect(request.method == "GET" && request.target == "/auth?key=a%20b", note)
            #expect(request.contentCount == 0 && !request.fields.contains("Content-Length"), note)
            #expect(!request.fields.contains("Transfer-Encoding"), note)
            let added = [
                ("Host", "127.0.0.1:\(origin.port)"), ("Onward-Method", "POST"), ("Onward-Target", target),
                ("Onward-Host", server.authority), ("Onward-Length", "1000"),
            ]
            for (name, _) in sent + added {
                let expected = (sent + added).filter { $0.0 == name }.map(\.1)
                #expect(request.fields.values(name) == expected, note)
            }
            #expect(
                Set(request.fields.map { $0.name.lowercased() }) == Set((sent + added).map { $0.0.lowercased() }), note)
            #expect(origin.malformed.isEmpty)
        }
    }

    @Test("the length that is shown is that of the complete representation, and only if the server verifies it")
    func length() throws {
        let application = try Application()
        try application.withServer { server in
            func shown(_ request: Request) throws -> String? {
                let before = application.asked.count
                _ = try server.exchange(request.by("anna"))
                #expect(application.asked.count == before + 1)
                return application.asked.last?.fields["Onward-Length"]
            }
            let ten = Payload.bytes(10)
            for path in ["/files/x", "/app/x"] {
                #expect(try shown(.get(path)) == nil)
                #expect(try shown(Request("PUT", path, [], .bytes(ten))) == "10")
                #expect(try shown(Request("PUT", path, [], .bytes([]))) == "0")
                #expect(try shown(Request("PUT", path, [], .chunks([ten]))) == nil)
                // Not an upload, so that its Upload-Length has no meaning.
                #expect(try shown(Request("PUT", path, [("Upload-Length", "1")], .bytes(ten))) == "10")
                #expect(try shown(Request("PUT", path, [("Upload-Length", "1")], .chunks([ten]))) == nil)
                #expect(try shown(.creation(.v8, "PUT", path, complete: true, .bytes(ten))) == "10")
                #expect(try shown(.creation(.v8, "PUT", path, complete: false, .bytes(ten))) == nil)
                #expect(try shown(.creation(.v8, "PUT", path, complete: false, length: 50, .bytes(ten))) == "50")
                #expect(try shown(.creation(.v3, "PUT", path, complete: false, length: 50, .bytes(ten))) == nil)
                #expect(try shown(.creation(.v3, "PUT", path, complete: true, .bytes(ten))) == "10")
                let malformed = Request.creation(.v8, "PUT", path, complete: false, .bytes(ten))
                for value in ["+50", "-50", "fifty", "\"50\""] {
                    #expect(try shown(malformed.with("Upload-Length", value)) == nil, "\(value)")
                }
            }
            let location = try server.begin(by: "anna", "/app/x", ten)
            #expect(try shown(.append(.v8, location, at: 10, complete: false, .bytes(ten))) == nil)
            #expect(try shown(.append(.v8, location, at: 20, complete: true, length: 30, .bytes(ten))) == "30")
        }
    }

    @Test("the application is shown the path and the host that a request in absolute form names")
    func absoluteForm() throws {
        let application = try Application()
        try application.withServer { server in
            let request = Request("GET", "http://app.example:81/app/private?x=y").by("anna")
            #expect(try server.exchange(request).status == 201)
            let shown = try #require(application.asked.first)
            #expect(shown.fields.values("Onward-Target") == ["/app/private?x=y"])
            #expect(shown.fields.values("Onward-Host") == ["app.example:81"])
            let served = try #require(application.served.first)
            #expect(served.target == "/app/private?x=y")
            #expect(served.fields.values("Host") == ["app.example:81"])
        }
    }

    // MARK: Requests that are allowed

    @Test("the origin gets the principal of the decision, and the credentials of the client")
    func allowed() throws {
        let application = try Application()
        try application.withServer { server in
            let forged = [
                ("Onward-Principal", "mallory"), ("Onward_Principal", "mallory"), ("onward-principal", "mallory"),
            ]
            var plain = Request("POST", "/app/x", forged, .bytes([1, 2, 3])).by("anna")
            #expect(try server.exchange(plain).text == "made")
            plain.target = "/app/y"
            let location = try server.begin(by: "anna", "/app/up", Payload.bytes(100))
            #expect(application.served.count == 1)
            let last = Request.append(.v8, location, at: 100, complete: true, .bytes([1])).by("anna")
                .with("Onward-Principal", "mallory").with("Cookie", "session=cookie-0123456789")
            let response = try server.exchange(last)
            #expect(response.status == 201 && response.complete == true, "\(response)")
            #expect(application.served.count == 2)
            for request in application.served {
                #expect(request.fields.values("Onward-Principal") == ["anna"], "\(request.text)")
                #expect(request.fields.values("Authorization") == [Request.credentials(of: "anna")], "\(request.text)")
            }
            #expect(application.served.last?.fields["Cookie"] == "session=cookie-0123456789")
            #expect(application.served.last?.content == Payload.bytes(100) + [1])
        }
    }

    @Test("requests with a token of this server are not shown, and the token is not forwarded")
    func tokens() throws {
        let application = try Application()
        let token = "token-of-alice-0123456789"
        let fixture = try TokenFixture("alice \(token)", application.options)
        let server = fixture.server
        for target in ["/app/x", "/files/x"] {
            #expect(try server.exchange(Request("PUT", target, [], .bytes([1])).with(token: token)).status == 201)
            let created = try server.exchange(
                Request.creation(.v8, "PUT", target, complete: false, .bytes([1])).with(token: token))
            let location = try #require(created.location)
            #expect(try server.exchange(.retrieval(.v8, location).with(token: token)).offset == 1)
            // For a user of the application the upload does not exist, and the other way around.
            #expect(try server.exchange(Request.retrieval(.v8, location).by("anna")).status == 404)
            let other = try server.begin(by: "anna", target, [1])
            #expect(try server.exchange(Request.retrieval(.v8, other).with(token: token)).status == 404)
        }
        #expect(application.asked.allSatisfy { $0.fields["Authorization"] == Request.credentials(of: "anna") })
        #expect(application.served.count == 1)
        #expect(application.served.first?.fields.contains("Authorization") == false)
        #expect(application.served.first?.fields["Onward-Principal"] == "alice")
        // A bearer token that this server does not know is meant for the application.
        let asked = application.asked.count
        let unknown = try server.exchange(Request.get("/app/x").with(token: "another-token-0123456789"))
        #expect(unknown.status == 401 && unknown.text == "who?")
        #expect(application.asked.count == asked + 1)
    }

    @Test("an application behind a Unix socket decides, too")
    func unixSocket() throws {
        let directory = try TemporaryDirectory()
        let origin = try ScriptedOrigin(unixPath: directory.path + "/s", Application.byUser())
        try withServer("--auth-url", origin.url + ":/decide/here?x") { (server) throws in
            #expect(try server.exchange(Request("PUT", "/files/x", [], .bytes([1])).by("anna")).status == 201)
            #expect(origin.requests.first?.target == "/decide/here?x")
            #expect(try server.exchange(.get("/files/x")).status == 401)
        }
    }

    @Test("the connections to the application are used again")
    func connections() throws {
        let application = try Application()
        try application.withServer { server in
            let connection = try server.connect()
            for _ in 0..<20 { #expect(try connection.exchange(Request.get("/files/").by("anna")).status == 200) }
            #expect(application.asked.count == 20)
            #expect(application.origin.connections <= 4, "\(application.origin.connections) connections")
        }
    }

    // MARK: Limits

    @Test("the limits of a decision are announced and enforced, together with those of the server")
    func limits() throws {
        let application = try Application(
            Application.byUser([("Upload-Limit", "max-size=100, max-age=50, min-size=1")]))
        try application.withServer("--max-size", "1000", "--max-append-size", "60") { server in
            let options = try server.exchange(Request("OPTIONS", "/files/x").by("anna"))
            #expect(options.limits == ["max-size": 100, "max-append-size": 60, "max-age": 50, "min-size": 1])
            for target in ["/files/x", "/app/x"] {
                let creation = Request.creation(.v8, "PUT", target, complete: false, .bytes(Payload.bytes(40))).by(
                    "anna")
                let created = try server.exchange(creation)
                #expect(created.status == 201, "\(created)")
                for limits in [created.limits]
                    + created.interim.filter({ $0.status == 104 && $0.location != nil }).map(\.limits)
                {
                    #expect(limits?["max-size"] == 100 && limits?["max-append-size"] == 60, "\(created)")
                    #expect((40...50).contains(limits?["max-age"] ?? 0), "\(created)")
                }
                let long = Request.creation(.v8, "PUT", target, complete: false, length: 101, .bytes([1])).by("anna")
                let refused = try server.exchange(long)
                #expect(refused.status == 413 && refused.limits?["max-size"] == 100, "\(refused)")
                let whole = Request.creation(.v8, "PUT", target, complete: true, .bytes(Payload.bytes(101))).by("anna")
                #expect(try server.exchange(whole).status == 413)
                // The limits of the upload remain, whatever later decisions say.
                application.decide(Application.byUser())
                let location = try #require(created.location)
                let state = try server.exchange(Request.retrieval(.v8, location).by("anna"))
                #expect(
                    state.limits?["max-size"] == 100 && (1...50).contains(state.limits?["max-age"] ?? 0), "\(state)")
                let next = Request.append(.v8, location, at: 40, complete: false, .bytes(Payload.bytes(60))).by("anna")
                #expect(try server.exchange(next).offset == 100)
                let more = Request.append(.v8, location, at: 100, complete: true, .bytes([1])).by("anna")
                #expect(try server.exchange(more).status == 413)
                application.decide(Application.byUser([("Upload-Limit", "max-size=100, max-age=50, min-size=1")]))
            }
            #expect(application.served.isEmpty && server.publishedNames().isEmpty)
            // A decision does not raise the limits of the server.
            application.decide(Application.byUser([("Upload-Limit", "max-size=5000, unknown=1")]))
            let long = Request.creation(.v8, "PUT", "/files/x", complete: false, length: 1001, .bytes([1])).by("anna")
            #expect(try server.exchange(long).status == 413)
        }
    }

    @Test("an upload to a file without the protocol keeps the limits of a decision, too")
    func plainLimits() throws {
        let application = try Application(Application.byUser([("Upload-Limit", "max-size=100")]))
        try application.withServer { (server) throws in
            let chunks = Array(repeating: Payload.bytes(30), count: 4)
            for content in [Request.Content.bytes(Payload.bytes(101)), .chunks(chunks)] {
                #expect(try server.exchange(Request("PUT", "/files/x", [], content).by("anna")).status == 413)
            }
            #expect(server.publishedNames().isEmpty)
            #expect(
                try server.exchange(Request("PUT", "/files/x", [], .bytes(Payload.bytes(100))).by("anna")).status == 201
            )
        }
    }

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

    // MARK: Uploads

    @Test("every request for an upload is decided again", arguments: ["/files/x", "/app/x"])
    func everyRequest(target: String) throws {
        let application = try Application()
        try application.withServer { server in
            let location = try server.begin(by: "anna", target, Payload.bytes(100))
            for request in Self.requests(of: location, at: 100) {
                let before = application.asked.count
                application.decide(Application.always("403 No", [], "revoked"))
                let refused = try server.exchange(request.by("anna"))
                #expect(refused.status == 403, "\(request.method)")
                #expect(refused.text == (request.method == "HEAD" ? "" : "revoked"), "\(request.method)")
                application.decide(Application.byUser())
                #expect((200..<300).contains(try server.exchange(request.by("anna")).status), "\(request.method)")
                #expect(application.asked.count == before + 2)
                for shown in application.asked.suffix(2) {
                    #expect(shown.fields["Onward-Method"] == request.method)
                    #expect(shown.fields["Onward-Target"] == location)
                    #expect(shown.fields["Authorization"] == Request.credentials(of: "anna"))
                }
            }
            #expect(try server.exchange(Request.retrieval(.v8, location).by("anna")).status == 404)
        }
    }

    @Test("for another principal an upload does not exist", arguments: ["/files/x", "/app/x"])
    func owner(target: String) throws {
        let application = try Application()
        try application.withServer { server in
            let location = try server.begin(by: "anna", target, Payload.bytes(100))
            let unknown = "/uploads/" + String(repeating: "0", count: location.split(separator: "/").last?.count ?? 0)
            func text(_ response: Response) -> String {
                response.fields.filter { $0.name != "Date" }.map { "\($0.name): \($0.value)\n" }.joined()
                    + response.text
            }
            for (request, absent) in zip(Self.requests(of: location, at: 100), Self.requests(of: unknown, at: 100)) {
                let response = try server.exchange(request.by("berta"))
                #expect(response.status == 404, "\(request.method)")
                #expect(text(response) == text(try server.exchange(absent.by("berta"))), "\(request.method)")
            }
            let final = Request.append(.v8, location, at: 100, complete: true, .bytes([1]))
            #expect(try server.exchange(final.by("berta")).status == 404)
            #expect(try server.exchange(Request.retrieval(.v8, location).by("anna")).offset == 100)
            #expect(try server.exchange(final.by("anna")).status == 201)
            #expect(try server.exchange(final.by("berta")).status == 404)
        }
    }

    @Test("an upload of an open route stays that of all clients, also of those that the application knows")
    func openRoute() throws {
        let application = try Application()
        let open = "/open=\(application.origin.url),access=open"
        try application.withServer("--route", open) { server in
            let location = try server.begin(by: "anna", "/open/x", Payload.bytes(100))
            #expect(application.asked.isEmpty)
            let closed = try server.begin(by: "anna", "/app/x", Payload.bytes(100))
            for user in ["anna", "berta"] {
                #expect(try server.exchange(Request.retrieval(.v8, location).by(user)).offset == 100)
            }
            #expect(try server.exchange(.retrieval(.v8, location)).offset == 100)
            #expect(try server.exchange(Request.retrieval(.v8, closed).by("berta")).status == 404)
            #expect(try server.exchange(.retrieval(.v8, closed)).status == 404)
            let last = Request.append(.v8, location, at: 100, complete: true, .bytes([1])).by("anna")
            #expect(try server.exchange(last).status == 201)
            #expect(application.served.last?.fields.contains("Onward-Principal") == false)
            #expect(application.served.last?.fields["Authorization"] == Request.credentials(of: "anna"))
        }
    }

    @Test("a request that takes longer than 10 seconds is decided again at its end")
    func slow() throws {
        let application = try Application()
        try application.withServer { server in
            let names = ["stays", "revoked", "changed", "dead"]
            let connections = try names.map { name in
                let connection = try server.connect()
                try connection.send(
                    Request.creation(.v8, "PUT", "/files/\(name)", complete: true, .declared(1000)).by(name))
                return connection
            }
            let locations = try connections.map { try #require(try $0.requireInterim().location) }
            let deadline = Deadline(in: .milliseconds(10_100))
            var sent = 0
            while !deadline.isOver {
                for connection in connections { try connection.send([7]) }
                sent += 1
                Deadline.pause(.milliseconds(100))
            }
            #expect(application.asked.count == 4)
            application.decide { request, connection in
                switch request.fields["Onward-Target"] {
                case "/files/revoked": try connection.respond("403 No", [("X-Reason", "revoked")], "not any more")
                case "/files/changed": try connection.respond("200 OK", [("Onward-Principal", "mallory")])
                case "/files/dead": connection.close()
                default: try Application.byUser()(request, connection)
                }
            }
            for connection in connections { try connection.send([UInt8](repeating: 7, count: 1000 - sent)) }
            let responses = try connections.map { try $0.readResponse() }
            #expect(responses.map(\.status) == [201, 403, 403, 503], "\(responses)")
            // A request whose connection was closed is sent again.
            let again = application.asked.dropFirst(4).compactMap { $0.fields["Onward-Target"] }
            #expect(again.filter { $0 != "/files/dead" }.count == 3 && Set(again) == Set(names.map { "/files/" + $0 }))
            #expect(
                responses[1].text == "not any more" && responses[1].value("X-Reason") == "revoked", "\(responses[1])")
            #expect(responses[2].problem?.code == "not-allowed")
            #expect(responses[3].problem?.code == "authorization-unavailable")
            #expect(responses[3].value("Retry-After") == "5")
            #expect(server.publishedNames() == ["stays"])
            application.decide(Application.byUser())
            for (name, (location, response)) in zip(names, zip(locations, responses)).dropFirst() {
                #expect(response.offset == 1000 && response.complete == false, "\(response)")
                let state = try server.exchange(Request.retrieval(.v8, location).by(name))
                #expect(state.offset == 1000 && state.complete == false, "\(state)")
                let again = Request.append(.v8, location, at: 1000, complete: true, .bytes([])).by(name)
                #expect(try server.exchange(again).status == 201)
            }
            #expect(Set(server.publishedNames()) == Set(names))
        }
    }

    // MARK: The paths of the server

    @Test("the application decides about files, too")
    func files() throws {
        let application = try Application()
        try application.withServer { server in
            #expect(try server.exchange(Request("PUT", "/files/d/x", [], .bytes([1, 2]))).status == 401)
            #expect(try server.exchange(Request("PUT", "/files/d/x", [], .bytes([1, 2])).by("anna")).status == 201)
            let location = try server.begin(by: "anna", "/files/d/y", [3])
            #expect(
                try server.exchange(Request.append(.v8, location, at: 1, complete: true, .bytes([4])).by("anna")).status
                    == 201)
            for path in ["/files/", "/files/d/", "/files/d/x", "/files/missing"] {
                #expect(try server.exchange(.get(path)).text == "who?", "\(path)")
            }
            let file = try server.exchange(Request.get("/files/d/x").by("berta"))
            #expect(file.status == 200 && file.content == [1, 2])
            #expect(file.value("Cache-Control")?.contains("private") == true, "\(file)")
            #expect(try server.exchange(Request("PUT", "/files/d/x", [], .bytes([5])).by("berta")).status == 204)
            #expect(try server.exchange(Request("DELETE", "/files/d/x")).status == 401)
            #expect(server.published("d/x") == [5])
            #expect(try server.exchange(Request("DELETE", "/files/d/x").by("anna")).status == 204)
            #expect(server.published("d/y") == [3, 4] && server.published("d/x") == nil)
            #expect(application.asked.compactMap { $0.fields["Onward-Target"] }.contains("/files/d/x"))
            #expect(application.served.isEmpty)
        }
    }

    @Test("metrics need a token, and health checks do not, even if the application is dead")
    func metricsAndHealth() throws {
        let application = try Application()
        let fixture = try TokenFixture("ops token-of-ops-0123456789", application.options)
        let server = fixture.server
        #expect(try server.exchange(.get("/metrics")).text == "who?")
        let refused = try server.exchange(Request.get("/metrics").by("anna"))
        #expect(refused.status == 403 && refused.problem?.code == "insufficient-scope", "\(refused)")
        #expect(application.asked.count == 2)
        application.origin.stop()
        expectUndecided(try server.exchange(.get("/metrics")), "authorization-unavailable")
        #expect(try server.exchange(Request.get("/metrics").with(token: "token-of-ops-0123456789")).status == 200)
        for path in ["/healthz", "/readyz"] { #expect(try server.exchange(.get(path)).status == 200) }
        #expect(application.asked.count == 2)
    }

    @Test("preflights get their response without credentials", arguments: ["401 Who", "403 No", "404 None"])
    func preflights(status: String) throws {
        let page = "https://app.example"
        let application = try Application(Application.always(status, [("X-Reason", "none")]))
        try application.withServer("--cors-origin", page) { server in
            for target in ["/files/x", "/app/x", "/uploads/x"] {
                let fields = [("Origin", page), ("Access-Control-Request-Method", "PATCH")]
                let response = try server.exchange(Request("OPTIONS", target, fields))
                #expect(response.status == 204, "\(response)")
                #expect(response.value("Access-Control-Allow-Origin") == page)
                #expect(response.list("Access-Control-Allow-Methods").contains("patch"))
                #expect(response.list("Access-Control-Allow-Headers").contains("authorization"))
                #expect(!response.fields.contains("Upload-Limit") && !response.fields.contains("X-Reason"))
                // The request after it gets the refusal, which the page can read.
                let refused = try server.exchange(Request("PATCH", target, [("Origin", page)], .bytes([])))
                #expect(String(refused.status) == status.prefix(3) && refused.value("X-Reason") == "none")
                #expect(refused.value("Access-Control-Allow-Origin") == page)
                // OPTIONS of other clients is no preflight.
                #expect(String(try server.exchange(Request("OPTIONS", target)).status) == status.prefix(3))
            }
            #expect(application.served.isEmpty)
        }
    }
}

/// How long decisions are used again.
@Suite("Gateway: repeated decisions", .blocking)
struct GatewayAuthorizationCachingTests {
    /// The number of decisions about two equal requests.
    private func decisions(_ fields: [(String, String)], _ status: String = "200 OK") throws -> Int {
        let application = try Application(Application.always(status, fields + [("Onward-Principal", "anna")]))
        try application.withServer { server in
            for _ in 0..<2 { _ = try server.exchange(.get("/files/")) }
        }
        return application.asked.count
    }

    @Test(
        "a decision without explicit freshness is not used again",
        arguments: [
            [], [("Cache-Control", "")], [("Cache-Control", "private")], [("Cache-Control", "public")],
            [("Cache-Control", "max-age=0")], [("Cache-Control", "max-age=-5")], [("Cache-Control", "max-age=soon")],
            [("Cache-Control", "max-age")], [("Cache-Control", "no-store")],
            [("Cache-Control", "max-age=60, no-store")],
            [("Cache-Control", "No-Store"), ("Cache-Control", "max-age=60")],
            [("Cache-Control", "no-cache, max-age=60")],
            [("Cache-Control", "max-age=60"), ("Age", "60")], [("Cache-Control", "max-age=60"), ("Age", "3600")],
            [("X-Cache-Control", "max-age=60")], [("Last-Modified", "Mon, 01 Jan 2001 00:00:00 GMT")],
        ])
    func stale(fields: [(String, String)]) throws {
        #expect(try decisions(fields) == 2)
    }

    @Test(
        "a fresh decision is used again",
        arguments: [
            [("Cache-Control", "max-age=60")], [("cache-control", "private, MAX-AGE=60")],
            [("Cache-Control", "private"), ("Cache-Control", "max-age=60")], [("Cache-Control", "max-age=\"60\"")],
            [("Cache-Control", "max-age=3600"), ("Age", "1800")],
        ])
    func fresh(fields: [(String, String)]) throws {
        #expect(try decisions(fields) == 1)
    }

    @Test("refusals are used again, too, and failures are not")
    func refusals() throws {
        #expect(try decisions([("Cache-Control", "max-age=60")], "403 No") == 1)
        #expect(try decisions([], "403 No") == 2)
        #expect(try decisions([("Cache-Control", "max-age=60")], "500 Oops") == 2)
        #expect(try decisions([("Cache-Control", "max-age=60")], "302 Found") == 2)
    }

    @Test("a decision ends with its freshness")
    func expiry() throws {
        let application = try Application(
            Application.always("200 OK", [("Onward-Principal", "a"), ("Cache-Control", "max-age=1")]))
        try application.withServer { server in
            _ = try server.exchange(.get("/files/"))
            application.decide(Application.always("403 No"))
            let refused = try pollUntil(within: .seconds(30)) { () -> Bool? in
                try server.exchange(.get("/files/")).status == 403 ? true : nil
            }
            #expect(refused == true)
            #expect(application.asked.count == 2)
        }
    }

    @Test("a decision is used again only for a request with the same method, target and fields")
    func keys() throws {
        let application = try Application(Application.byUser([("Cache-Control", "max-age=600")]))
        try application.withServer { server in
            let requests = [
                Request.get("/files/x").by("anna"), Request.get("/files/x").by("berta"), .get("/files/x"),
                Request.get("/files/y").by("anna"), Request.get("/files/x?").by("anna"),
                Request.get("/files/x?y").by("anna"),
                Request.get("/files/%78").by("anna"), Request("HEAD", "/files/x").by("anna"),
                Request("OPTIONS", "/files/x").by("anna"), Request.get("/files/x").by("anna").with("Cookie", "a=b"),
                Request.get("/files/x").by("anna").with("Cookie", "a=c"),
                Request.get("/files/x").by("anna").with("X-A", "b").with("X-A", "c"),
                Request.get("/files/x").by("anna").with("X-A", "bc"),
                Request.get("/files/x").by("anna").with("X-Ab", "c"),
                Request.get("/files/x").by("anna").with("Host", "other.example"), Request.get("/app/x").by("anna"),
                Request("PUT", "/app/x", [], .bytes([1])).by("anna"),
                Request("PUT", "/app/x", [], .bytes([1, 2])).by("anna"),
            ]
            for (index, request) in requests.enumerated() {
                _ = try server.exchange(request)
                #expect(application.asked.count == index + 1, "\(request)")
            }
            for request in requests { _ = try server.exchange(request) }
            // Only the refusal has no freshness.
            #expect(application.asked.count == requests.count + 1)
            // The decision about one user is not that about another one.
            #expect(application.served.count == 6)
            #expect(application.served.allSatisfy { $0.fields["Onward-Principal"] == "anna" })
            #expect(try server.exchange(.get("/files/x")).text == "who?")
        }
    }

    @Test("fields that are not shown do not matter")
    func unshown() throws {
        let application = try Application(Application.byUser([("Cache-Control", "max-age=600")]))
        try application.withServer { server in
            let request = Request.get("/files/").by("anna")
            for field in [
                ("Range", "bytes=0-1"), ("If-None-Match", "\"x\""), ("Onward-Principal", "x"),
                ("X-Forwarded-For", "::1"),
            ] {
                _ = try server.exchange(request.with(field.0, field.1))
            }
            #expect(application.asked.count == 1)
        }
    }

    @Test("limits are part of a decision that is used again")
    func limits() throws {
        let application = try Application(
            Application.byUser([("Cache-Control", "max-age=600"), ("Upload-Limit", "max-size=5")]))
        try application.withServer { (server) throws in
            for _ in 0..<2 {
                #expect(
                    try server.exchange(Request("PUT", "/files/x", [], .bytes(Payload.bytes(6))).by("anna")).status
                        == 413)
            }
            #expect(application.asked.count == 1)
        }
    }
}
