import ConformanceKit
import SystemCalls
import TestSupport
import Testing

private typealias Application = AuthorizingApplication

/// Tests the requests that an application gets to authorize clients, and the effects of its responses.
@Suite("Gateway: authorization by an application", .blocking)
struct GatewayAuthorizationTests {
    // MARK: Requests to the application

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
        let origin = try ScriptedServer.origin(unixPath: directory.path + "/s", Application.byUser())
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
                let entire = Request.creation(.v8, "PUT", target, complete: true, .bytes(Payload.bytes(101))).by("anna")
                #expect(try server.exchange(entire).status == 413)
                // The limits of the upload remain, even if later decisions have others.
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
}
