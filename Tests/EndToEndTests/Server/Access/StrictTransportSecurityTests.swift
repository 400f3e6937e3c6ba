import ConformanceKit
import TestSupport
import Testing

@Suite("Strict-Transport-Security", .serialized, .blocking)
struct StrictTransportSecurityTests {
    @Test("--hsts adds the field only for clients that use TLS, either directly or according to a trusted proxy")
    func strictTransportSecurity() throws {
        let name = "strict-transport-security"
        func field(_ fixture: TLSFixture, _ arguments: String...) throws -> String? {
            let answer = try fixture.curl(["-D", "-", "-o", "/dev/null"] + arguments)
            #expect(try answer.awaitEnding() == .exited(0))
            let lines = answer.errorOutput.split(whereSeparator: \.isNewline).filter {
                $0.lowercased().hasPrefix(name + ":")
            }
            #expect(lines.count <= 1)
            return lines.first.map { $0.dropFirst(name.count + 1).drop { $0 == " " } }.map(String.init)
        }
        let off = try TLSFixture()
        #expect(try field(off, off.url + "/healthz") == nil)
        let socket = try TemporaryDirectory()
        let fixture = try TLSFixture(
            "--hsts", "1d", "--listen", "127.0.0.1:0", "--listen", "unix:" + socket.path + "/s")
        for path in ["/healthz", "/files/", "/files/none", "/uploads/none", "/none"] {
            #expect(try field(fixture, fixture.url + path) == "max-age=86400", "\(path)")
        }
        #expect(try field(fixture, "-H", "X-Forwarded-Proto: http", fixture.url + "/healthz") == nil)
        let plain = ["--unix-socket", socket.path + "/s", "http://localhost/healthz"]
        #expect(try field(fixture, plain[0], plain[1], plain[2]) == nil)
        let proxied = try field(fixture, "-H", "X-Forwarded-Proto: https", plain[0], plain[1], plain[2])
        #expect(proxied == "max-age=86400")
        try fixture.server.restart(fixture.server.options.filter { $0 != "1d" && $0 != "--hsts" } + ["--hsts", "0"])
        #expect(try field(fixture, plain[0], plain[1], plain[2]) == nil)
        let standard = try field(fixture, "-H", "Forwarded: proto=https;for=192.0.2.1", plain[0], plain[1], plain[2])
        #expect(standard == "max-age=0")
    }

    @Test(
        "--hsts adds the field to every response over TLS, including malformed requests",
        arguments: [
            "GET /healthz HTTP/1.1\\r\\n\\r\\n", "GET /healthz\\r\\n\\r\\n", "\\0",
            "GET * HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n",
            "PUT /files/f HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: +5\\r\\n\\r\\n",
            "PUT /files/f HTTP/1.1\\r\\nHost: localhost\\r\\nX-Forwarded-Proto: http\\r\\nContent-Length: x\\r\\n\\r\\n",
            "PUT /files/f HTTP/1.1\\r\\nHost: localhost\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\nzz\\r\\n",
            "GET /healthz HTTP/2.0\\r\\nHost: localhost\\r\\n\\r\\n",
        ])
    func unreadable(request: String) throws {
        let fixture = try TLSFixture("--hsts", "1d")
        let process = try ChildProcess(
            "/bin/sh",
            [
                "-c", "printf \"$1\" | openssl s_client -quiet -connect \"127.0.0.1:$0\" 1>&2",
                "\(fixture.server.port)", request,
            ])
        _ = try process.awaitEnding()
        let answer = process.errorOutput
        #expect(answer.contains("HTTP/1.1 4") || answer.contains("HTTP/1.1 5"), "\(answer)")
        let lines = answer.lowercased().split(whereSeparator: \.isNewline)
        #expect(lines.count { $0 == "strict-transport-security: max-age=86400" } == 1, "\(answer)")
    }

    @Test("--hsts requires a duration, and can be set in the environment")
    func hstsOption() throws {
        let root = try TemporaryDirectory()
        try OnwardRun(["serve", "--root", root.path + "/d", "--hsts", "long"]).expect(64, "--hsts", "'long'")
        try withServer(environment: ["ONWARD_HSTS": "1h"]) { server in
            let response = try server.exchange(Request("GET", "/healthz", [("X-Forwarded-Proto", "https")]))
            #expect(response.fields["Strict-Transport-Security"] == "max-age=3600")
            #expect(try server.exchange(.get("/healthz")).fields["Strict-Transport-Security"] == nil)
        }
    }
}
