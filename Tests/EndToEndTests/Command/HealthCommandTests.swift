import TestSupport
import Testing

@Suite("Command: health", .blocking)
struct HealthCommandTests {
    @Test("health ends with 0 if the server is ready, with 69 for another response, with 75 without a server")
    func statuses() throws {
        let home = try CommandHome()
        try withServer { server in
            let url = server.url("/readyz")
            let ready = try home.run("health", url)
            try ready.expect(0)
            #expect(ready.errors.contains("200") && ready.output == "")
            #expect(try home.run("health", "--quiet", url).errors == "")
            let refused = try home.run("health", server.url("/files/nothing"))
            try refused.expect(69)
            #expect(refused.errors.contains("404"))
            try home.run("health", url, url).expect(64)
            let unusable = try home.run("health", "nonsense")
            try unusable.expect(64)
            #expect(unusable.errors.contains("neither a URL") && unusable.errors.contains("/healthz"))
        }
        try home.run("health", "http://127.0.0.1:1/readyz").expect(75)
    }
    /// Runs `onward health` with the variables of a server on the same machine.
    private func health(_ variables: [String: String], _ path: String?, expect status: Int32) throws -> String {
        // A request through this proxy would fail.
        let others = ["http_proxy": "http://127.0.0.1:1", "ONWARD_MAX_SIZE": "nonsense"]
        let run = try CommandHome().start(
            ["health"] + (path.map { [$0] } ?? []), environment: others.merging(variables) { $1 })
        try run.expect(status)
        return run.errors
    }

    @Test("without a URL, health sends its request to the server that the variables of serve describe")
    func ownServer() throws {
        try withServer { server in
            let variables = ["ONWARD_LISTEN": server.authority + " 127.0.0.1:1"]
            #expect(
                try health(variables, nil, expect: 0).contains("http://\(server.authority)/readyz responded with 200"))
            #expect(try health(variables, "/healthz", expect: 0).contains("/healthz responded with 200"))
            let refused = try health(variables, "/files/nothing", expect: 69)
            #expect(refused.contains("404: "), "the reason is missing: \(refused)")
            // The server listens on all addresses (0.0.0.0); the command connects to the loopback address.
            #expect(try health(["ONWARD_LISTEN": "0.0.0.0:\(server.port)"], nil, expect: 0).contains("200"))
            _ = try health(variables, "/a b", expect: 64)
        }
        _ = try health(["ONWARD_LISTEN": "127.0.0.1:1"], nil, expect: 75)
        _ = try health(["ONWARD_LISTEN": "nowhere"], nil, expect: 64)
    }

    @Test(
        "/healthz and /readyz are those of the server if it has them below --own-prefix, and other paths are unchanged")
    func ownPrefix() throws {
        try withServer("--own-prefix", "/.own%20ward/x") { server in
            let prefix = "/.own%20ward/x"
            let variables = ["ONWARD_LISTEN": server.authority, "ONWARD_OWN_PREFIX": prefix]
            for (path, requested) in [
                (nil, "/readyz"), ("/readyz", "/readyz"), ("/healthz", "/healthz"), (prefix + "/healthz", "/healthz"),
            ] {
                let answer = try health(variables, path, expect: 0)
                #expect(
                    answer.contains("http://\(server.authority)\(prefix)\(requested) responded with 200"), "\(answer)")
            }
            let refused = try health(variables, "/healthz/x", expect: 69)
            #expect(refused.contains("http://\(server.authority)/healthz/x responded with 404"), "\(refused)")
        }
    }

    @Test("without a URL, health connects with TLS, for any name in the certificate, and to a Unix socket")
    func ownServerOtherwise() throws {
        let fixture = try TLSFixture()
        let variables = [
            "ONWARD_LISTEN": fixture.server.authority, "ONWARD_TLS_CERT": fixture.certificate,
            "ONWARD_TLS_KEY": fixture.path("key.pem"),
        ]
        #expect(
            try health(variables, nil, expect: 0).contains(
                "https://\(fixture.server.authority)/readyz responded with 200"))
        let directory = try TemporaryDirectory()
        let path = "unix:" + directory.path + "/socket"
        try withServer("--listen", path) { _ in
            let answer = try health(["ONWARD_LISTEN": path], "/healthz", expect: 0)
            #expect(answer.contains("responded with 200"))
        }
    }

    @Test("a server without free space is alive, and not ready")
    func noRoom() throws {
        try withServer("--min-free", "900T") { server in
            let variables = ["ONWARD_LISTEN": server.authority]
            let unready = try health(variables, nil, expect: 69)
            #expect(unready.contains("503: "))
            let living = try health(variables, "/healthz", expect: 0)
            #expect(living.contains("200"))
        }
    }
}
