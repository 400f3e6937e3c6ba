import ConformanceKit
import Foundation
import TestSupport
import Testing

/// Tests which clients may use the uploads of a route, and that routes are separate from the server's own paths.
@Suite("Gateway: the owners of uploads", .blocking)
struct GatewayUploadAccessTests {
    private typealias Fixture = GatewayUploadFixture
    private static let content = GatewayUploadFixture.content
    private static let alice = "alice-secret-token-0123456789"
    private static let bob = "bob-secret-token-0123456789"
    private static let tokens = "alice \(alice)\nbob \(bob)\n"

    private func withTokens(_ routes: String..., body: (ServerProcess) throws -> Void) throws {
        let fixture = try TokenFixture(Self.tokens, routes.flatMap { ["--route", $0] })
        try body(fixture.server)
    }

    private func begin(_ server: ServerProcess, _ target: String, token: String?) throws -> String {
        let fields = Fixture.fields + (token.map { [("Authorization", "Bearer " + $0)] } ?? [])
        return try Fixture.begin(server, .v8, Array(Self.content[..<1000]), target: target, fields: fields)
    }

    /// Completes an upload that ``begin`` created.
    private func complete(
        _ server: ServerProcess, _ location: String, token: String?, _ fields: [(String, String)] = []
    ) throws -> Response {
        var request = Request.append(
            .v8, location, at: 1000, complete: true, .bytes(Array(Self.content[1000...]))
        ).with(token: token)
        request.fields += fields
        return try server.exchange(request)
    }

    /// Expects that an upload does not exist for the holder of a token.
    private func expectNothing(
        _ server: ServerProcess, _ location: String, token: String?, status: Int = 404,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let requests: [Request] = [
            .retrieval(.v8, location), .retrieval(.v8, location, "GET"), .cancellation(.v8, location),
            .append(.v8, location, at: 1000, complete: true, .bytes(Array(Self.content[1000...]))),
        ]
        for request in requests {
            let response = try server.exchange(request.with(token: token))
            #expect(response.status == status, "\(request.method) \(response)", sourceLocation: sourceLocation)
        }
    }

    @Test("a token of this server is not forwarded; the origin gets the name of its owner")
    func token() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withTokens("/app=\(origin.url)") { server in
            let refused = try server.exchange(.creation(.v8, "POST", "/app/x", complete: true, .bytes([1])))
            #expect(refused.status == 401)
            let location = try begin(server, Fixture.target, token: Self.alice)
            try expectNothing(server, location, token: Self.bob)
            try expectNothing(server, location, token: nil, status: 401)
            try expectNothing(server, location, token: "unknown-token-0123456789", status: 401)
            #expect(origin.requests.isEmpty)
            Fixture.expectAnswer(
                try complete(server, location, token: Self.alice, [("Cookie", "session=cookie-0123456789")]), .v8)
            let request = try #require(origin.requests.first)
            #expect(request.fields.values("Onward-Principal") == ["alice"])
            #expect(!request.fields.contains("Authorization"))
            #expect(request.fields["Cookie"] == "session=cookie-0123456789")
            #expect(request.content == Self.content)
            try expectNothing(server, location, token: Self.bob)
            let again = try server.exchange(
                Request.append(.v8, location, at: Self.content.count, complete: true, .bytes([])).with(
                    token: Self.alice))
            Fixture.expectAnswer(again, .v8, isLive: false)
            #expect(origin.requests.count == 1)
        }
    }

    @Test("--public-read opens files, and no route")
    func publicReading() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        let fixture = try TokenFixture(Self.tokens, ["--route", "/app=\(origin.url)", "--public-read"])
        #expect(try fixture.server.exchange(Request("GET", "/files/")).status == 200)
        for method in ["GET", "HEAD"] {
            #expect(try fixture.server.exchange(Request(method, "/app/x")).status == 401, "\(method)")
        }
        #expect(origin.requests.isEmpty)
        let response = try fixture.server.exchange(Request("GET", "/app/x").with(token: Self.alice))
        #expect(response.status == 201 && origin.requests.count == 1, "\(response)")
    }

    @Test(
        "an upload of an open route belongs to the token with which it was created, or to all clients without a token")
    func openRoute() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withTokens("/app=\(origin.url),access=open", "/inside=\(origin.url)") { server in
            let anonymous = try begin(server, "/app/x", token: nil)
            let owned = try begin(server, "/app/x", token: Self.alice)
            let inside = try begin(server, "/inside/x", token: Self.alice)
            for token in [Self.alice, Self.bob] { try expectNothing(server, anonymous, token: token) }
            // Without a valid token the response is the same whether the upload exists or not.
            let unknown = "/uploads/" + String(repeating: "A", count: anonymous.utf8.count - 9)
            for location in [owned, inside, unknown, "/uploads/x", "/uploads/"] {
                try expectNothing(server, location, token: Self.bob)
                for token in [nil, "unknown-token-0123456789"] {
                    try expectNothing(server, location, token: token, status: 401)
                    let response = try server.exchange(Request.retrieval(.v8, location).with(token: token))
                    #expect(response.value("WWW-Authenticate")?.hasPrefix("Bearer realm=") == true, "\(response)")
                }
            }
            #expect(origin.requests.isEmpty)
            // A credential that is not a token of this server belongs to the application.
            #expect(try complete(server, anonymous, token: "of-the-application-0123456789").status == 201)
            #expect(origin.requests.last?.fields["Authorization"] == "Bearer of-the-application-0123456789")
            #expect(origin.requests.last?.fields.contains("Onward-Principal") == false)
            for location in [owned, inside] {
                #expect(try complete(server, location, token: Self.alice).status == 201)
                #expect(origin.requests.last?.fields.contains("Authorization") == false)
                #expect(origin.requests.last?.fields["Onward-Principal"] == "alice")
            }
            #expect(origin.requests.count == 3)
        }
    }

    @Test("an open route for all paths, or above another route, opens neither the server's own paths nor that route")
    func openAbove() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withTokens("/=\(origin.url),access=open", "/admin=\(origin.url)") { server in
            for path in ["/files/", "/files/x", "/metrics", "/admin", "/admin/x", "/%61dmin/x", "/%66iles/x"] {
                #expect(try server.exchange(.get(path)).status == 401, "\(path)")
                let created = try server.exchange(.creation(.v8, "PUT", path, complete: true, .bytes(Self.content)))
                #expect(created.status == 401 || path == "/metrics" && created.status >= 400, "\(path): \(created)")
            }
            #expect(try server.exchange(Request.get("/files/").with(token: Self.alice)).status == 200)
            #expect(origin.requests.isEmpty)
            for path in ["/", "/x", "/adminx", "/filesx"] {
                #expect(try server.exchange(.creation(.v8, "PUT", path, complete: true, .bytes([1]))).status == 201)
                #expect(origin.requests.last?.target == path)
            }
            #expect(origin.requests.count == 4)
        }
    }

    @Test("uploads to a route do not become files, and uploads of files never reach an origin")
    func separation() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withGateway(to: origin, options: ["--allow-anonymous"]) { server in
            let file = try server.begin(.v8, "/files/x", Array(Self.content[..<1000]))
            let other = try begin(server, "/app/x", token: nil)
            #expect(try complete(server, file, token: nil).status == 201)
            #expect(origin.requests.isEmpty)
            #expect(server.published("x") == Self.content)
            Fixture.expectAnswer(try complete(server, other, token: nil), .v8)
            #expect(origin.requests.count == 1)
            #expect(server.publishedNames() == ["x"])
            for path in ["/application/x", "/app/../files/y", "/files/../app/y", "/App/x", "/app%2Fx", "/appx"] {
                let response = try server.exchange(.creation(.v8, "PUT", path, complete: true, .bytes([1])))
                #expect(response.status >= 400 && response.status < 500, "\(path): \(response)")
            }
            #expect(origin.requests.count == 1)
            #expect(server.publishedNames() == ["x"])
        }
    }

    @Test("without tokens the server serves only its routes")
    func routesOnly() throws {
        let origin = try ScriptedServer.origin(Fixture.accept)
        try withGateway(to: origin) { server in
            let requests: [Request] = [
                .get("/files/"), .get("/files/x"), .get("/metrics"), .get("/"), .get("/other"),
                Request("PUT", "/files/x", [], .bytes([1])), Request("DELETE", "/files/x"),
                .creation(.v8, "PUT", "/files/x", complete: true, .bytes([1])),
                .creation(.v8, "PUT", "/files/x", complete: false, .bytes([1])),
            ]
            for request in requests {
                let response = try server.exchange(request)
                #expect(response.status == 403, "\(request.method) \(request.target): \(response)")
                #expect(response.problem?.code == "routes-only", "\(request.method) \(request.target): \(response)")
            }
            #expect(try server.exchange(.get("/healthz")).status == 200)
            #expect(try server.retrieve("/uploads/unknown").status == 404)
            #expect(server.publishedNames().isEmpty && origin.requests.isEmpty)
            #expect(try server.exchange(.creation(.v8, "PUT", "/app/x", complete: true, .bytes([1]))).status == 201)
        }
    }
}

/// Mistakes in the settings of routes, which are reported before anything starts.
@Suite("Gateway: settings of routes", .blocking)
struct GatewayUploadSettingsTests {
    /// Runs a server that must not start. Expects that its output contains all words, and that it creates no data
    /// directory.
    private func expectRefusal(
        _ options: [String], _ words: [String], lines: Int? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let directory = try TemporaryDirectory()
        let run = try OnwardRun(["serve", "--root", directory.path + "/data", "--listen", "127.0.0.1:0"] + options)
        #expect(run.ending == .exited(64), "\(run.output)", sourceLocation: sourceLocation)
        for word in words {
            #expect(run.output.contains(word), "\(word): \(run.output)", sourceLocation: sourceLocation)
        }
        for noise in ["Fatal error", "Error(", ".swift", "Route("] {
            #expect(!run.output.contains(noise), "\(run.output)", sourceLocation: sourceLocation)
        }
        if let lines {
            // The last line refers to --help.
            let count = run.output.split(separator: "\n").count - 1
            #expect(count == lines, "\(run.output)", sourceLocation: sourceLocation)
        }
        #expect(
            !FileManager.default.fileExists(atPath: directory.path + "/data"), sourceLocation: sourceLocation)
    }

    @Test("a route without an access rule")
    func access() throws {
        try expectRefusal(["--route", "/app=http://127.0.0.1:1"], ["/app", "access=open", "--token-file"])
    }

    @Test(
        "a route at or below a path of the server",
        arguments: [
            "/files", "/files/x", "/uploads", "/uploads/a/b", "/metrics", "/metrics/x", "/healthz", "/readyz",
            "/%66iles", "/files/",
        ])
    func ownPaths(path: String) throws {
        try expectRefusal(["--route", "\(path)=http://127.0.0.1:1,access=open"], ["the server's own", "--own-prefix"])
    }

    @Test("two routes with the same path")
    func duplicates() throws {
        for other in ["/app", "/app/", "/%61pp"] {
            try expectRefusal(
                [
                    "--route", "/app=http://127.0.0.1:1,access=open", "--route",
                    "\(other)=http://127.0.0.1:2,access=open",
                ],
                ["/app", "twice"])
        }
    }

    @Test(
        "origins that cannot be used",
        arguments: [
            "", "localhost", "localhost:3000", "ftp://127.0.0.1", "http://", "http:///x", "http://127.0.0.1/base",
            "http://127.0.0.1?x", "http://127.0.0.1:99999", "http://127.0.0.1:port", "http://[::1", "unix:",
            "unix:app.sock",
            "unix:/" + String(repeating: "x", count: 200), "http://user:password@127.0.0.1", "http://a b",
        ])
    func origins(origin: String) throws {
        try expectRefusal(["--route", "/app=\(origin),access=open"], ["--route"])
    }

    @Test(
        "settings that are wrong",
        arguments: [
            "access=closed", "access", "timeout=0s", "timeout=soon", "timeout=-1s", "retry=never", "repeat=yes",
            "color=red",
            "timeout=1s,timeout=2s",
        ])
    func settings(setting: String) throws {
        try expectRefusal(
            ["--route", "/app=http://127.0.0.1:1,access=open,\(setting)"],
            ["--route", String(setting.prefix { $0 != "=" })])
    }

    @Test("all mistakes of a file are reported at once, each with its line")
    func file() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.file(
            "routes",
            Array(
                """
                # The applications
                /good=http://127.0.0.1:1 access=open timeout=2s
                no route
                /a=ftp://127.0.0.1 access=closed timeout=x

                /files/x=http://127.0.0.1:1,access=open   # below a path of the server
                /good=http://127.0.0.1:2,access=open
                /private=http://127.0.0.1:1
                """.utf8))
        let lines = [
            "line 3: 'no", "line 4: ", "'access=closed'", "'timeout=x'", "line 6: the route /files/x",
            "line 7: the route /good is given twice", "line 8: the route /private has no access rule",
        ]
        try expectRefusal(["--routes-file", path], lines.map { $0 }, lines: 5)
        // The mistakes of the file are reported together with the mistakes of the command line.
        try expectRefusal(
            ["--routes-file", path, "--route", "/uploads=http://127.0.0.1:1,access=open", "--route", "/b=x:y"],
            lines + ["/uploads", "'x:y'"], lines: 7)
        try expectRefusal(["--routes-file", directory.path + "/missing"], ["missing cannot be read"])
    }

    @Test("a file with routes")
    func goodFile() throws {
        let origin = try ScriptedServer.origin(GatewayUploadFixture.accept)
        let directory = try TemporaryDirectory()
        let path = try directory.file(
            "routes",
            Array("# one\r\n\r\n  /a=\(origin.url)\taccess=open  timeout=2s\r\n/b/c=\(origin.url),access=open".utf8))
        try withServer("--routes-file", path) { server in
            for target in ["/a/x", "/b/c"] {
                let response = try server.exchange(.creation(.v8, "PUT", target, complete: true, .bytes([1])))
                #expect(response.status == 201, "\(response)")
                #expect(origin.requests.last?.target == target)
            }
            let refused = try server.exchange(.creation(.v8, "PUT", "/b/x", complete: true, .bytes([1])))
            #expect(refused.status == 403, "\(refused)")
            #expect(origin.requests.count == 2)
        }
    }
}
