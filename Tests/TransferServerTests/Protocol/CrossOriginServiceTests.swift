import ConformanceKit
import HTTPTestSupport
import Testing

/// Browsers (the CORS protocol of the Fetch standard), and access to a server without tokens. The harness verifies a
/// preflight for an upload, and the exposed fields. These tests verify the options of our server, its files, and refusals.
@Suite("Browsers and anonymous access", .blocking)
struct CrossOriginServiceTests {
    private static let origin = "https://app.example"
    private static let requestFields = [
        "upload-offset", "upload-complete", "upload-incomplete", "upload-length", "upload-draft-interop-version",
        "content-type",
    ]
    private static let responseFields = [
        "location", "upload-offset", "upload-complete", "upload-incomplete", "upload-length", "upload-limit",
    ]

    @Test(
        "XCO-01 VER-27: the response to a preflight allows methods and fields of the protocol, and has the limits",
        arguments: ["/files/f", "/files/", "upload"])
    func preflight(target: String) throws {
        try withService(settings: .with { $0.server.corsOrigins = [Self.origin] }) { server in
            let target = target == "upload" ? try server.begin() : target
            let request = Request(
                "OPTIONS", target,
                [
                    ("Origin", Self.origin), ("Access-Control-Request-Method", "PATCH"),
                    ("Access-Control-Request-Headers", Self.requestFields.joined(separator: ", ")),
                ])
            let response = try server.exchange(request)
            #expect(response.isSuccessful)
            #expect(response.value("Access-Control-Allow-Origin") == Self.origin)
            #expect(response.list("Vary").contains("origin"))
            #expect(Set(response.list("Access-Control-Allow-Headers")).isSuperset(of: Self.requestFields))
            if target.hasPrefix("/uploads/") {
                #expect(Set(response.list("Access-Control-Allow-Methods")).isSuperset(of: ["head", "patch", "delete"]))
            } else {
                #expect(response.list("Access-Control-Allow-Methods").contains(target == "/files/" ? "post" : "put"))
            }
            #expect(response.limits?.isEmpty == false)
        }
    }

    @Test(
        "XCO-02: a page can read refusals of malformed requests, too, if the server could read Origin",
        arguments: [
            "Content-Length: +5\r\n\r\n", "folded\r\n line\r\n\r\n", "X: \u{1}\r\n\r\n", "X: a\0b\r\n\r\n",
            "Transfer-Encoding: gzip, chunked\r\n\r\n", "X: \(String(repeating: "a", count: 70_000))\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        ])
    func unreadable(following: String) throws {
        try withSocket(settings: .with { $0.server.corsOrigins = [Self.origin] }) { server in
            func refusal(_ origin: String) throws -> Response {
                let connection = try server.connect()
                let head = "PUT /files/f HTTP/1.1\r\nHost: \(server.authority)\r\n\(origin)" + following
                _ = connection.sendUntilRefused(Array(head.utf8))
                return try connection.readResponse()
            }
            let response = try refusal("Origin: \(Self.origin)\r\n")
            #expect([400, 431, 501].contains(response.status))
            #expect(response.value("Access-Control-Allow-Origin") == Self.origin)
            #expect(Set(response.list("Access-Control-Expose-Headers")).isSuperset(of: Self.responseFields))
            #expect(response.list("Vary").contains("origin"))
            let other = "Origin: https://evil.example\r\n"
            for origin in [other, "Origin: \(Self.origin)\r\n" + other, ""] {
                let other = try refusal(origin)
                #expect((400...599).contains(other.status) && !other.fields.contains("Access-Control-Allow-Origin"))
            }
        }
    }

    @Test(
        "other origins get no permission, and cannot change anything",
        arguments: ["https://evil.example", "null", "https://app.example.evil"])
    func foreignOrigin(origin: String) throws {
        try withService(settings: .with { $0.server.corsOrigins = [Self.origin] }) { server in
            let read = try server.exchange(
                Request("OPTIONS", "/files/f", [("Origin", origin), ("Access-Control-Request-Method", "PUT")]))
            #expect(!read.fields.contains("Access-Control-Allow-Origin"))
            #expect(!read.fields.contains("Access-Control-Allow-Methods"))
            let response = try server.exchange(.creation(.v8, complete: true, .bytes([1])).with("Origin", origin))
            #expect(response.status == 403)
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test("without --cors-origin no page of another origin can write or read anything")
    func withoutOrigins() throws {
        try withService { server in
            let location = try server.begin()
            for request in [
                Request.creation(.v8, complete: true, .bytes([1])),
                .append(.v8, location, at: 0, complete: true, .bytes([])),
                .cancellation(.v8, location), Request("DELETE", "/files/x"),
                Request("POST", "/files/", [], .bytes([1])),
            ] {
                let response = try server.exchange(request.with("Origin", "https://evil.example"))
                #expect(response.status == 403, "\(request.method)")
                #expect(response.problem?.code != nil)
                #expect(!response.fields.contains("Access-Control-Allow-Origin"))
            }
            #expect(try server.retrieve(location).offset == 0)
            // Pages of the server itself have the server's origin.
            let own = Request.creation(.v8, "PUT", "/files/own", complete: true, .bytes([1])).with(
                "Origin", "http://\(server.authority)")
            #expect(try server.exchange(own).status == 201)
        }
    }

    @Test(
        "anonymous access: a request must name the machine by a loopback name",
        arguments: ["evil.example", "192.0.2.1", "localhost.evil.example", "127.0.0.1.nip.io:80"])
    func foreignHost(host: String) throws {
        try withService { server in
            for request in [
                Request.get("/files/"), .creation(.v8, complete: true, .bytes([1])), Request("OPTIONS", "*"),
            ] {
                let response = try server.exchange(request.with("Host", host))
                #expect(response.status == 403)
            }
            let absolute = try server.exchange(.get("http://\(host)/files/").with("Host", "localhost"))
            #expect(absolute.status == 403)
            #expect(try server.exchange(.get("/healthz").with("Host", host)).status == 200)
        }
    }

    @Test(
        "anonymous access: every loopback name is accepted",
        arguments: ["localhost", "127.0.0.1", "[::1]", "LOCALHOST:1234"])
    func ownHost(host: String) throws {
        try withService { server in
            let response = try server.exchange(.creation(.v8, complete: true, .bytes([1])).with("Host", host))
            #expect(response.status == 201)
        }
    }

    @Test(
        "anonymous access: a request through a proxy is refused",
        arguments: [
            "Forwarded: for=192.0.2.1", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Host: x", "X-Forwarded-Proto: https",
            "X-Real-IP: 192.0.2.1",
        ])
    func forwarded(line: String) throws {
        try withService { server in
            let parts = line.split(separator: ": ").map(String.init)
            let response = try server.exchange(.creation(.v8, complete: true, .bytes([1])).with(parts[0], parts[1]))
            #expect(response.status == 403)
            #expect(server.data.publishedNames().isEmpty)
        }
    }

    @Test("anonymous access: --allow-anonymous permits any Host, any Origin and requests through a proxy")
    func allowed() throws {
        try withService(settings: .with { $0.server.isAnonymousAllowed = true }) { server in
            let request = Request.creation(.v8, complete: true, .bytes([1]))
                .with("Host", "files.example").with("X-Forwarded-For", "192.0.2.1").with(
                    "Origin", "https://evil.example")
            let response = try server.exchange(request)
            #expect(response.status == 201)
        }
    }
}
