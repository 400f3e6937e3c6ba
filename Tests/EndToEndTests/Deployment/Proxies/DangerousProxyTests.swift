import Foundation
import TestSupport
import Testing

/// What happens where a proxy is set up otherwise than docs/operating.md says. Nobody wants any of it: where one of these fails,
/// a proxy has become better, and docs/operating.md may say so.
@Suite(
    "Dangerous settings of proxies", .blocking, .serialized,
    .enabled(if: ReverseProxy.areWanted, "make test-proxies installs and starts proxies"))
struct DangerousProxyTests {
    private static let size = 6_000_000
    private static let content = Payload.bytes(size)

    private func upload(_ proxied: ProxiedServer, _ file: String, _ options: String...) throws -> CurlRequest {
        try CurlRequest(
            proxied, "/files/a.bin", ["-T", file, "--limit-rate", "4M", "-H", "Upload-Complete: ?1"] + options)
    }

    @Test("nginx with 104 on: it takes the first one for the final response", arguments: WireVersion.allCases)
    func nginxWithInterims(version: WireVersion) throws {
        let changes = [("proxy_set_header Onward-Interim off;", "")]
        try withProxy(.nginx, version, changes: changes) { proxied in
            let request = try upload(proxied, try proxied.file(Self.content)).finish()
            let first = try #require(request.heads.first)
            #expect(first.status == 104)
            switch version {
            case .http1:
                // What only a final response has: nginx's own name. All that follows it relays as content of that.
                #expect(first["Server"] == "nginx/1.22.1")
                #expect(request.final?["Server"] == nil, "the server's final response went through as it was")
            case .http2:
                #expect(request.process.ending == .exited(92), "\(request.process.errorOutput)")
                #expect(request.final == nil)
                #expect((request.sent ?? 0) < Self.size)
            }
        }
    }

    @Test(
        "nginx with its default buffering: the server never sees an upload that was cut",
        arguments: WireVersion.allCases)
    func nginxBuffering(version: WireVersion) throws {
        let changes = [("proxy_request_buffering off;", "")]
        try withProxy(.nginx, version, changes: changes) { proxied in
            let file = try proxied.file(Self.content)
            let location = try proxied.create("/files/a.bin")
            let request = try proxied.append(file, to: location, at: 0, "--limit-rate", "3M")
            let hasSent = pollUntil(within: .seconds(60)) { request.bytesRead > 2_000_000 ? true : nil }
            #expect(hasSent == true)
            request.process.kill(SIGKILL)
            try request.finish()
            #expect(try proxied.state(of: location).offset == 0)
            #expect(!proxied.server.log.contains(" PATCH "))
        }
    }

    @Test("Varnish (pass) with 104 on: it answers 503 in the server's place")
    func varnishWithInterims() throws {
        try withProxy(.varnish, .http1) { proxied in
            let request = try upload(proxied, try proxied.file(Self.content))
            #expect(try request.response().status == 503)
        }
    }

    @Test("Varnish (pass) ends content that was cut as if it were whole; --require-length refuses such content (411)")
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
                    #expect(bytes >= 1_000_000 && bytes < Self.size, "a part was published as the whole")
                }
            }
        }
    }

    @Test(
        "Apache: a refusal of content that takes longer than the server reads on (10 s) is lost",
        arguments: WireVersion.allCases)
    func apacheLosesRefusals(version: WireVersion) throws {
        try withProxy(.apache, version) { proxied in
            let file = try proxied.file(Self.content)
            let location = try proxied.create("/files/a.bin")
            let request = try proxied.append(file, to: location, at: 5, "--limit-rate", "400K").finish()
            #expect(request.final.map { $0.status == 502 } ?? (request.process.ending != .exited(0)))
            #expect(request.final?.status != 409)
            // Whoever asks then learns it all the same.
            #expect(try proxied.state(of: location) == (0, false))
        }
    }
}
