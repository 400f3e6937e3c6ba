import ConformanceKit
import TestSupport
import Testing

/// `--own-prefix`, with a route for all paths.
@Suite("Gateway: the server's own paths below a prefix", .blocking)
struct GatewayAuthorizationPrefixTests {
    private static let token = "token-of-ops-0123456789"

    private func withPrefix(_ body: (ServerProcess, AuthorizingApplication) throws -> Void) throws {
        let application = try AuthorizingApplication()
        let fixture = try TokenFixture(
            "ops \(Self.token)", ["--route", "/=\(application.origin.url),access=open", "--own-prefix", "/.onward"])
        try body(fixture.server, application)
    }

    @Test("the application has the paths of the server")
    func forwarded() throws {
        try withPrefix { server, application in
            let paths = [
                "/", "/files", "/files/x", "/uploads", "/uploads/x", "/uploads/a/b", "/healthz", "/readyz", "/metrics",
                "/metrics/x", "/.onward", "/.onward/", "/.onward/x", "/.onwards/files/x",
            ]
            for path in paths {
                #expect(try server.exchange(.get(path)).text == "made", "\(path)")
                let created = try server.exchange(.creation(.v8, "PUT", path, complete: true, .bytes([1])))
                #expect(created.text == "made", "\(path): \(created)")
                #expect(application.served.suffix(2).map(\.target) == [path, path])
                #expect(application.served.suffix(2).map(\.method) == ["GET", "PUT"])
            }
            #expect(server.publishedNames().isEmpty)
        }
    }

    @Test("the server's resources are below the prefix")
    func own() throws {
        try withPrefix { server, application in
            for path in ["/.onward/healthz", "/.onward/readyz"] {
                #expect(try server.exchange(.get(path)).status == 200, "\(path)")
            }
            let refused = [
                "/.onward/metrics", "/.onward/files/", "/.onward/files/x", "/%2Eonward/files/x", "/%2eonward/metrics",
                "/.onward/metrics/x", "/.onward/healthz/x", "/.onward/%68ealthz",
            ]
            for path in refused { #expect(try server.exchange(.get(path)).status == 401, "\(path)") }
            let metrics = try server.exchange(Request.get("/.onward/metrics").with(token: Self.token))
            #expect(metrics.status == 200 && metrics.text.contains("onward_"))
            // Whatever has one of the names is not the application's, even with credentials.
            for path in ["/.onward/healthz/x", "/.onward/metrics/x", "/%2Eonward/healthz", "/.onward/uploads/a/b"] {
                #expect(try server.exchange(Request.get(path).with(token: Self.token)).status == 404, "\(path)")
            }
            #expect(application.origin.requests.isEmpty)
        }
    }

    @Test("uploads and files have URLs below the prefix")
    func uploads() throws {
        try withPrefix { server, application in
            for target in ["/.onward/files/x", "/any/x"] {
                let created = try server.exchange(
                    Request.creation(.v8, "PUT", target, complete: false, .bytes(Payload.bytes(100))).with(
                        token: Self.token))
                #expect(created.status == 201, "\(created)")
                let location = try #require(created.location)
                #expect(location.hasPrefix("/.onward/uploads/"), "\(created)")
                let announced = created.interim.filter { $0.status == 104 }.compactMap(\.location)
                #expect(announced == [location], "\(created)")
                let options = try server.exchange(Request("OPTIONS", location).with(token: Self.token))
                #expect(
                    options.fields.contains("Upload-Limit") && options.list("Allow").contains("patch"), "\(options)")
                #expect(try server.exchange(Request.retrieval(.v8, location).with(token: Self.token)).offset == 100)
                #expect(try server.exchange(Request.retrieval(.v8, location)).status == 401)
                let last = Request.append(.v8, location, at: 100, complete: true, .bytes([1])).with(token: Self.token)
                #expect(try server.exchange(last).status == 201)
            }
            #expect(server.published("x") == Payload.bytes(100) + [1])
            #expect(application.served.map(\.target) == ["/any/x"])
            #expect(application.served.first?.fields["Onward-Principal"] == "ops")
            let discovered = try server.exchange(Request("OPTIONS", "/.onward/files/x").with(token: Self.token))
            #expect(discovered.fields.contains("Upload-Limit"), "\(discovered)")
            let named = try server.exchange(Request("POST", "/.onward/files/", [], .bytes([1])).with(token: Self.token))
            let file = try #require(named.location)
            #expect(file.hasPrefix("/.onward/files/"), "\(named)")
            #expect(try server.exchange(Request.get(file).with(token: Self.token)).content == [1])
            #expect(try server.exchange(Request("DELETE", file).with(token: Self.token)).status == 204)
        }
    }

    @Test("the log does not contain the secret of an upload URL")
    func log() throws {
        try withPrefix { server, application in
            let created = try server.exchange(.creation(.v8, "PUT", "/any/x", complete: false, .bytes([1])))
            let location = try #require(created.location)
            let secret = try #require(location.split(separator: "/").last.map(String.init))
            let targets = [
                location, location + "/", location + "/x", location + "?x", "/%2Eonward/uploads/" + secret,
                "/.onward/%75ploads/" + secret, "/.onward/uploads//" + secret, "/.onward/uploads/%\(secret)",
                "/uploads/" + secret,
            ]
            for target in targets {
                _ = try server.exchange(Request("HEAD", target, [("Upload-Draft-Interop-Version", "8")]))
            }
            _ = try server.process.awaitErrorOutput { text -> Bool? in
                text.split(separator: "\n").count { $0.contains(" HEAD ") } == targets.count ? true : nil
            }
            let lines = server.log.split(separator: "\n").filter { $0.contains(" HEAD ") || $0.contains(" PUT ") }
            for line in lines { #expect(!line.contains(secret.dropFirst(10).prefix(12)), "\(line)") }
            #expect(lines.contains { $0.contains(" /.onward/uploads/") }, "\(lines)")
        }
    }

    @Test("with a prefix, the application decides about the paths below it as about others")
    func decisions() throws {
        let application = try AuthorizingApplication()
        let options = ["--route", "/=\(application.origin.url)", "--auth-url", "\(application.origin.url)/auth"]
        try withServer(options: options + ["--own-prefix", "/.onward"]) { server in
            for path in ["/x", "/files/x", "/auth", "/.onward/files/x", "/.onward/metrics", "/.onward/uploads/x"] {
                #expect(try server.exchange(.get(path)).text == "who?", "\(path)")
                #expect(application.asked.last?.fields["Onward-Target"] == path)
            }
            #expect(try server.exchange(.get("/.onward/healthz")).status == 200)
            let location = try server.begin(by: "anna", "/x", [1])
            #expect(location.hasPrefix("/.onward/uploads/"))
            #expect(try server.exchange(Request.retrieval(.v8, location).by("berta")).status == 404)
            #expect(
                try server.exchange(Request.append(.v8, location, at: 1, complete: true, .bytes([2])).by("anna")).status
                    == 201)
            #expect(application.served.map(\.content) == [[1, 2]])
        }
    }

    @Test(
        "options that do not fit together are reported at the start",
        arguments: [
            (["--own-prefix", "onward"], "'onward' is not a path"), (["--own-prefix", ""], "'' is not a path"),
            (["--own-prefix", "/"], "'/' is not a path"), (["--own-prefix", "/a/../b"], "'/a/../b' is not a path"),
            (["--own-prefix", "/a%2Fb"], "'/a%2Fb' is not a path"),
            (["--own-prefix", "/a//b"], "'/a//b' is not a path"),
            (["--own-prefix", "/a", "--route", "/a/files=http://h,access=open"], "/a/files"),
            (["--own-prefix", "/a/", "--route", "/a/uploads/x=http://h,access=open"], "/a/uploads"),
            (["--own-prefix", "/%61", "--route", "/a/metrics=http://h,access=open"], "/a/metrics"),
            (["--auth-url", "h/auth"], "'h/auth' is not a URL"), (["--auth-url", "ftp://h/auth"], "ftp://h/auth"),
            (["--auth-url", "http://u:p@h/auth"], "--auth-url"),
            (["--auth-url", "unix:s:/auth"], "absolute path of a socket"),
            (["--auth-url", "http://h/auth", "--allow-anonymous"], "cannot be combined"),
            (["--route", "/a=http://h"], "no access rule"),
        ])
    func startErrors(options: [String], message: String) throws {
        let directory = try TemporaryDirectory()
        let run = try OnwardRun(["serve", "--root", directory.path + "/data", "--listen", "127.0.0.1:0"] + options)
        #expect(run.ending == .exited(64), "\(run.output)")
        #expect(run.output.contains(message), "\(run.output)")
    }

    @Test("a route above the own paths, or next to them, is allowed")
    func routesAround() throws {
        let application = try AuthorizingApplication()
        let url = application.origin.url
        try withServer(
            "--own-prefix", "/.onward", "--route", "/.onward=\(url),access=open", "--route", "/files=\(url),access=open"
        ) { (server) throws in
            #expect(try server.exchange(.get("/.onward/x")).text == "made")
            #expect(try server.exchange(.get("/files/x")).text == "made")
            #expect(try server.exchange(.get("/.onward/files/x")).status == 403)
            #expect(try server.exchange(.get("/.onward/healthz")).text == "ok\n")
            #expect(application.served.map(\.target) == ["/.onward/x", "/files/x"])
        }
    }
}
