import ConformanceKit
import TestSupport
import Testing

/// Applications behind https whose certificate a private authority has issued.
@Suite("Gateway: --origin-cacert", .blocking)
struct GatewayCertificateTests {
    private let identity: SelfSignedCertificate
    private let application: AuthorizingApplication

    init() throws {
        identity = try SelfSignedCertificate()
        application = try AuthorizingApplication()
    }

    /// Runs `body` with a server that forwards to a server with TLS, which forwards to the application.
    private func withSecureOrigin(
        _ options: [String], _ body: (ServerProcess, _ secure: ServerProcess) throws -> Void
    ) throws {
        let certificate = ["--tls-cert", identity.certificate, "--tls-key", identity.key]
        try withServer(options: certificate + ["--route", "/=\(application.origin.url),access=open"]) { secure in
            let url = "https://127.0.0.1:\(secure.port)"
            let routes = [
                "--route", "/app=\(url),access=open", "--route", "/closed=\(url)", "--auth-url", url + "/auth",
            ]
            try withServer(options: routes + options) { server in try body(server, secure) }
        }
    }

    @Test("routes and --auth-url trust the certificates of the file")
    func trusted() throws {
        try withSecureOrigin(["--origin-cacert", identity.certificate]) { server, _ in
            #expect(try server.exchange(.get("/app/x")).text == "made")
            let upload = try server.exchange(
                .creation(.v8, "POST", "/app/x", complete: true, .bytes(Payload.bytes(1000))))
            #expect(upload.status == 201 && upload.text == "made", "\(upload)")
            #expect(application.served.last?.contentCount == 1000)
            let decided = try server.exchange(Request.get("/closed/x").by("anna"))
            #expect(decided.status == 201 && application.asked.count == 1, "\(decided)")
        }
    }

    @Test("without the file, and with other certificates, no request is sent")
    func untrusted() throws {
        let other = try SelfSignedCertificate()
        for options in [[], ["--origin-cacert", other.certificate]] {
            try withSecureOrigin(options) { server, _ in
                let response = try server.exchange(.get("/app/x"))
                #expect(response.status == 502 && response.problem?.code == "origin-unreachable", "\(response)")
                expectUndecided(try server.exchange(Request.get("/closed/x").by("anna")), "authorization-unavailable")
                #expect(application.origin.requests.isEmpty)
            }
        }
    }

    @Test("a file that cannot be read, or has no certificate, is reported at the start")
    func unusable() throws {
        let directory = try TemporaryDirectory()
        let empty = try directory.file("empty.pem", [])
        for path in ["/nonexistent/ca.pem", empty, identity.key, directory.path] {
            for command in [["serve", "--root", directory.path + "/data"], ["outcomes", "list"]] {
                let run = try OnwardRun(command + ["--origin-cacert", path])
                #expect(run.ending == .exited(64), "\(run.output)")
                #expect(run.output.contains("--origin-cacert") && run.output.contains(path), "\(run.output)")
            }
        }
    }
}
