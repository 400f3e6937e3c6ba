import ConformanceKit
import SystemCalls
import TestSupport
import Testing

private typealias Application = AuthorizingApplication

/// Tests how long a decision of the application is used for further requests.
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
            #expect(try eventually(within: .seconds(30)) { try server.exchange(.get("/files/")).status == 403 })
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

    @Test("a decision is used again although a field that the application is not shown has changed")
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
