import ConformanceKit
import Foundation
import TestSupport
import Testing

/// The cookie with which browsers read files, and the usage.
@Suite("Sessions of browsers", .blocking)
struct SessionTests {
    private static let anna = "token-of-anna-0123456789"
    private static let tokens = "anna \(anna) read,create,write,admin\nbox token-of-box-0123456789 prefix=/files/box/"

    private func begin(_ server: ServerProcess, token: String = Self.anna, prefix: String = "") throws -> Response {
        let origin = [("Origin", "http://\(server.authority)")]
        return try server.exchange(Request("POST", prefix + "/onward/session", origin, .bytes([])).with(token: token))
    }

    private func cookie(_ server: ServerProcess, token: String = Self.anna, prefix: String = "") throws -> (
        String, String
    ) {
        let field = try #require(try begin(server, token: token, prefix: prefix).value("Set-Cookie"))
        return ("Cookie", String(field.prefix { $0 != ";" }))
    }

    private func put(_ name: String, _ server: ServerProcess) throws {
        #expect(
            try server.exchange(Request("PUT", name, [], .bytes(Payload.bytes(100))).with(token: Self.anna)).status
                == 201)
    }

    @Test("SEC-05: the cookie is valid on every server with the token, and ends with the token")
    func nodes() throws {
        let (one, other) = (try TokenFixture(Self.tokens), try TokenFixture(Self.tokens))
        for fixture in [one, other] { try put("/files/x", fixture.server) }
        let cookie = try cookie(one.server)
        for fixture in [one, other] {
            let range = Request(
                "GET", "/files/x", [cookie, ("Range", "bytes=10-19"), ("Sec-Fetch-Site", "same-origin")])
            let part = try fixture.server.exchange(range)
            #expect(part.status == 206 && part.content == Array(Payload.bytes(100)[10..<20]))
            #expect(part.value("Cache-Control") == "private, no-cache")
            #expect(try fixture.server.exchange(Request("HEAD", "/files/x", [cookie])).status == 200)
        }
        try one.server.restart()
        #expect(try one.server.exchange(Request("GET", "/files/x", [cookie])).status == 200)
        try other.reload("berta \(Self.anna)\nanna another-token-0123456789")
        #expect(try other.server.exchange(Request("GET", "/files/x", [cookie])).status == 401)
        #expect(try one.server.exchange(Request("GET", "/files/x", [cookie])).status == 200)
        try one.reload("anna another-token-0123456789")
        #expect(try one.server.exchange(Request("GET", "/files/x", [cookie])).status == 401)
    }

    @Test("the cookie changes nothing: every other method and every other resource needs a token")
    func readsOnly() throws {
        let fixture = try TokenFixture(Self.tokens, "--cors-origin", "*")
        let server = fixture.server
        try put("/files/x", server)
        let cookie = try cookie(server)
        let upload = try server.exchange(
            Request.creation(.v8, complete: false, .bytes([1])).with(token: Self.anna))
        let location = try #require(upload.location)
        let fields = [cookie, ("Sec-Fetch-Site", "same-origin")]
        for request in [
            Request("PUT", "/files/x", fields, .bytes([1])), Request("PUT", "/files/new", fields, .bytes([1])),
            Request("POST", "/files/", fields, .bytes([1])), Request("PATCH", location, fields, .bytes([1])),
            Request("DELETE", "/files/x", fields), Request("DELETE", location, fields),
            Request("OPTIONS", "/files/x", fields), Request("OPTIONS", "*", fields), Request("GET", location, fields),
            Request("HEAD", location, fields), Request("GET", "/metrics", fields),
            Request("GET", "/onward/usage", fields), Request("GET", "/", fields),
        ] {
            #expect(try server.exchange(request).status == 401, "\(request)")
        }
        for foreign in [
            ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site"), ("Origin", "https://other.example"),
        ] {
            #expect(try server.exchange(Request("GET", "/files/x", [cookie, foreign])).status == 401, "\(foreign)")
        }
        #expect(server.published("x") == Payload.bytes(100) && server.publishedNames() == ["x"])
        let wrong = Request("GET", "/files/x", [cookie]).with(token: "token-of-nobody-012345")
        #expect(try server.exchange(wrong).status == 401)
    }

    @Test("a page of another origin cannot begin a session, whatever --cors-origin allows")
    func foreign() throws {
        let server = try TokenFixture(Self.tokens, "--cors-origin", "*").server
        for fields in [
            [], [("Origin", "https://other.example")], [("Origin", "http://127.0.0.1:1")], [("Origin", "null")],
            [("Origin", "http://\(server.authority)"), ("Sec-Fetch-Site", "cross-site")],
        ] {
            for method in ["POST", "DELETE"] {
                let refused = try server.exchange(
                    Request(method, "/onward/session", fields, .bytes([])).with(token: Self.anna))
                #expect(refused.status == 403 && refused.problem?.code == "foreign-origin", "\(fields)")
                #expect(refused.value("Set-Cookie") == nil)
            }
        }
        let own = try begin(server)
        #expect(own.status == 200 && own.text.contains(#""scopes":["read","create","write","admin"]"#))
    }

    @Test("an application never gets the cookie, and its clients keep their own cookies")
    func routes() throws {
        let application = try AuthorizingApplication()
        let fixture = try TokenFixture(
            Self.tokens, ["--route", "/=\(application.origin.url),access=open", "--own-prefix", "/.onward"])
        let server = fixture.server
        try put("/.onward/files/x", server)
        let cookie = try cookie(server, prefix: "/.onward")
        #expect(try server.exchange(Request("GET", "/.onward/files/x", [cookie])).status == 200)
        let fields = [("Cookie", "a=1; \(cookie.1); b=2"), cookie, ("Cookie", "c=3")]
        let draft = [("Upload-Complete", "?1"), ("Upload-Draft-Interop-Version", "8")]
        for request in [
            Request("GET", "/x", fields), Request("HEAD", "/files/x", fields),
            Request("POST", "/x", fields, .bytes([1])),
            Request("PUT", "/y", fields + draft, .bytes([1, 2])), Request("GET", "//a/../x", fields),
        ] {
            _ = try server.exchange(request)
        }
        #expect(application.served.count >= 4)
        for served in application.served {
            #expect(served.fields.values("Cookie") == ["a=1; b=2", "c=3"], "\(served.method) \(served.target)")
            for field in served.fields { #expect(!field.value.contains("onward-session"), "\(field)") }
            #expect(["anonymous", nil].contains(served.fields["Onward-Principal"]))
        }
    }

    @Test("an application that authorizes requests does not get the cookie, and gets no request if the cookie is valid")
    func authorization() throws {
        let application = try AuthorizingApplication()
        let fixture = try TokenFixture(Self.tokens, application.options)
        let server = fixture.server
        try put("/files/x", server)
        let cookie = try cookie(server)
        let before = application.asked.count
        #expect(try server.exchange(Request("GET", "/files/x", [cookie])).status == 200)
        #expect(application.asked.count == before)
        let user = [("Cookie", "a=1; \(cookie.1)"), ("Authorization", "User berta s")]
        #expect(try server.exchange(Request("GET", "/files/x", user)).status == 200)
        #expect(try server.exchange(Request("DELETE", "/files/x", [cookie])).status == 401)
        #expect(application.asked.count == before + 2)
        for asked in application.asked { #expect(asked.fields["Cookie"]?.contains("onward") != true) }
        // This server does not know which operations the application allows, so the session has all scopes.
        let session = try server.exchange(
            Request(
                "POST", "/onward/session",
                [("Origin", "http://\(server.authority)"), ("Authorization", "User berta s")], .bytes([])))
        #expect(
            session.text == #"{"principal":"berta","scopes":["read","create","write"],"prefixes":[],"expires":null}"#)
        #expect(session.value("Set-Cookie") == nil)
    }

    @Test("the log has the principal of a request with the cookie, and nothing of the cookie")
    func log() throws {
        let fixture = try TokenFixture(Self.tokens, "--log-format", "json")
        try put("/files/x", fixture.server)
        let cookie = try cookie(fixture.server)
        _ = try fixture.server.exchange(Request("GET", "/files/x", [cookie]))
        let log = try fixture.server.awaitLog("GET")
        let line = try #require(log.split(separator: "\n").first { $0.contains("\"GET\"") })
        #expect(line.contains("\"principal\":\"anna\""), "\(line)")
        for part in cookie.1.split(separator: ":").dropFirst() { #expect(!log.contains(part)) }
    }

    @Test("the usage of all principals needs the scope admin, and the own usage only a token")
    func usage() throws {
        let fixture = try TokenFixture(Self.tokens, "--quota", "1000", "--max-uploads", "5")
        let server = fixture.server
        try put("/files/x", server)
        let box = "token-of-box-0123456789"
        let own = try server.exchange(Request.get("/onward/usage").with(token: box))
        #expect(own.text == #"{"principal":"box","bytes":0,"uploads":0,"quota":1000,"maxUploads":5}"#)
        #expect(try server.exchange(Request.get("/onward/usage?all").with(token: box)).status == 403)
        let all = try server.exchange(Request.get("/onward/usage?all").with(token: Self.anna))
        let start = #"{"principals":[{"principal":"anna","bytes":100,"uploads":0}],"quota":1000,"maxUploads":5,"free":"#
        #expect(all.text.hasPrefix(start) && !all.text.contains("null"), "\(all.text)")
        #expect(try server.exchange(.get("/onward/usage")).status == 401)
    }
}
