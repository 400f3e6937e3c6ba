import Foundation
import TestSupport
import Testing

/// The effects of proxy settings that docs/operating.md warns about. If one of these tests fails, a proxy has improved,
/// and docs/operating.md can be changed.
@Suite(
    "Dangerous settings of proxies", .blocking, .serialized,
    .enabled(if: ReverseProxy.areEnabled, "make test-proxies installs and starts proxies"))
struct DangerousProxyTests {
    private static let size = 6_000_000
    private static let content = Payload.bytes(size)

    private func upload(_ proxied: ProxiedServer, _ file: String, _ options: String...) throws -> CurlRequest {
        try CurlRequest(
            proxied, "/files/a.bin", ["-T", file, "--limit-rate", "4M", "-H", "Upload-Complete: ?1"] + options)
    }

    @Test("nginx uses the first 104 as the final response if the server sends 104", arguments: WireVersion.allCases)
    func nginxWithInterims(version: WireVersion) throws {
        let changes = [("proxy_set_header Onward-Interim off;", "")]
        try withProxy(.nginx, version, changes: changes) { proxied in
            let request = try upload(proxied, try proxied.file(Self.content)).finish()
            let first = try #require(request.heads.first)
            #expect(first.status == 104)
            switch version {
            case .http1:
                // nginx adds its own name to final responses only. Everything after this head is relayed as its
                // content.
                #expect(first["Server"] == "nginx/1.22.1")
                #expect(request.final?["Server"] == nil, "the proxy relayed the server's final response unchanged")
            case .http2:
                #expect(request.process.ending == .exited(92), "\(request.process.errorOutput)")
                #expect(request.final == nil)
                #expect((request.sent ?? 0) < Self.size)
            }
        }
    }

    @Test(
        "with its default buffering nginx sends nothing of a cut upload to the server",
        arguments: WireVersion.allCases)
    func nginxBuffering(version: WireVersion) throws {
        let changes = [("proxy_request_buffering off;", "")]
        try withProxy(.nginx, version, changes: changes) { proxied in
            let file = try proxied.file(Self.content)
            let location = try proxied.create("/files/a.bin")
            let request = try proxied.append(file, to: location, at: 0, "--limit-rate", "3M")
            #expect(eventually { request.bytesRead > 2_000_000 })
            request.process.kill(SIGKILL)
            try request.finish()
            #expect(try proxied.state(of: location).offset == 0)
            #expect(!proxied.server.log.contains(" PATCH "))
        }
    }

    @Test("Varnish (pass) responds 503 if the server sends 104")
    func varnishWithInterims() throws {
        try withProxy(.varnish, .http1) { proxied in
            let request = try upload(proxied, try proxied.file(Self.content))
            #expect(try request.response().status == 503)
        }
    }

    @Test("Varnish (pass) ends cut content as if it were complete; --require-length refuses such content (411)")
    func varnishTruncates() throws {
        for isGuarded in [false, true] {
            let options = ["--interim", "off"] + (isGuarded ? ["--require-length"] : [])
            try withProxy(.varnish, .http1, options: options) { proxied in
                let file = try proxied.file(Self.content)
                let request = try CurlRequest(
                    proxied, "/files/a.bin", ["-T", "-", "--limit-rate", "2M", "-H", "Upload-Complete: ?1"], input: file
                )
                if isGuarded {
                    #expect(try request.response().status == 411)
                    #expect(proxied.server.publishedNames() == [])
                } else {
                    try proxied.awaitReceived(1_000_000)
                    request.process.kill(SIGKILL)
                    try request.finish()
                    let published = pollUntil(within: .seconds(60)) { proxied.server.published("a.bin") }
                    let bytes = try #require(published).count
                    #expect(bytes >= 1_000_000 && bytes < Self.size, "the published file is incomplete")
                }
            }
        }
    }

    @Test(
        "Apache loses an error response if the client sends for longer than the server drains the content (10 s)",
        arguments: WireVersion.allCases)
    func apacheLosesRefusals(version: WireVersion) throws {
        try withProxy(.apache, version) { proxied in
            let file = try proxied.file(Self.content)
            let location = try proxied.create("/files/a.bin")
            let request = try proxied.append(file, to: location, at: 5, "--limit-rate", "400K").finish()
            #expect(request.final.map { $0.status == 502 } ?? (request.process.ending != .exited(0)))
            #expect(request.final?.status != 409)
            // A later HEAD still retrieves the state.
            #expect(try proxied.state(of: location) == (0, false))
        }
    }
}
