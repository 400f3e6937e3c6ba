import ConformanceKit
import Digests
import FoundationEssentials
import TestSupport
import Testing

/// The web interface, as the built program serves it. Browsers test its script elsewhere.
@Suite("The web interface", .blocking)
struct PageTests {
    private static let token = "token-of-anna-0123456789"

    @Test("browsers get the page; all other clients get the same as without the page", arguments: [[], ["--no-page"]])
    func clients(options: [String]) throws {
        try withServer(options: options) { server in
            try server.publish([1, 2, 3], as: "d/a%20b.txt")
            for target in ["/", "/files/", "/files/d/", "/files"] {
                let page = try server.exchange(.page(target))
                let isPage = page.text.contains(" data-folder=\"/files/\(target == "/files/d/" ? "d/" : "")\"")
                #expect(isPage == options.isEmpty, "\(target)")
                #expect(page.status == (target == "/" && !isPage ? 404 : 200))
                let head = try server.exchange(Request("HEAD", target, Request.page(target).fields))
                #expect(head.status == page.status && head.value("Content-Type") == page.value("Content-Type"))
            }
            #expect(try server.exchange(.page("/files/none/")).status == 404)
        }
    }

    @Test("requests that do not name HTML get the same bytes with and without the page")
    func unchanged() throws {
        let line = "anna \(Self.token)"
        let requests = ["/", "/files/", "/files", "/files/d/", "/files/none/", "/files/none", "/none", "/files/d"]
            .flatMap { target in
                [[], [("Accept", "*/*")], [("Accept", "application/json")], [("Accept", "image/png,*/*;q=0.5")]].flatMap
                {
                    fields in ["GET", "HEAD", "PATCH", "OPTIONS", "DELETE"].map { Request($0, target, fields) }
                }
            }
        func answers(_ options: [String]) throws -> [String] {
            let server = try TokenFixture(line, options).server
            let file = Request("PUT", "/files/d/x", [("Content-Type", "text/plain")], .bytes([1]))
            #expect(try server.exchange(file.with(token: Self.token)).status == 201)
            return try [nil, Self.token].flatMap { token in
                try requests.map { request in
                    let response = try server.exchange(request.with(token: token))
                    let fields = response.fields.filter { !["date", "content-length"].contains($0.name.lowercased()) }
                    // The modification times differ.
                    let text = response.text.replacing(/[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} .{17}/, with: "DATE")
                    return
                        "\(request.method) \(request.target) \(request.fields)\n\(response.status) \(fields)\n\(text)"
                }
            }
        }
        let (with, without) = (try answers([]), try answers(["--no-page"]))
        for (page, plain) in zip(with, without) { #expect(page == plain) }
    }

    @Test("the policy of the page allows its own script and style, and nothing else")
    func policy() throws {
        try withServer { server in
            let page = try server.exchange(.page("/files/"))
            let policy = try #require(page.value("Content-Security-Policy"))
            for (start, end, directive) in [
                ("<style>", "</style>", "style-src"), ("<script type=\"module\">", "</script>", "script-src"),
            ] {
                let inside = try #require(page.text.split(separator: start, maxSplits: 1).last)
                let text = try #require(inside.firstRange(of: end).map { inside[..<$0.lowerBound] })
                var digest = RunningDigest(.sha256)
                Array(text.utf8).withUnsafeBytes { digest.update($0) }
                let hash = Data(digest.finalized()).base64EncodedString()
                #expect(policy.contains("\(directive) 'sha256-\(hash)';"))
                #expect(page.text.split(separator: start).count == 2)
            }
            for word in ["unsafe", "http:", "https:", "*", "script-src 'self'", "data:"] {
                #expect(!policy.contains(word), "\(word)")
            }
            for (name, value) in [
                ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "same-origin"),
                ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"),
                ("Cache-Control", "no-cache"), ("Vary", "Accept"),
            ] {
                #expect(page.value(name) == value)
            }
        }
    }

    @Test(
        "uploaded files do not run in the origin of the page, whatever a browser accepts",
        arguments: [[], ["--inline"]])
    func activeContent(options: [String]) throws {
        try withServer(options: options) { server in
            for (name, type) in [
                ("a.svg", nil), ("a.html", nil), ("a.xml", nil), ("a.pdf", nil), ("a.js", nil),
                ("b", "image/svg+xml"), ("c", "text/html"), ("d", "application/xhtml+xml"), ("e", "text/javascript"),
            ] as [(String, String?)] {
                let fields = type.map { [("Content-Type", $0)] } ?? []
                let put = Request("PUT", "/files/\(name)", fields, .bytes(Array("<script>x</script>".utf8)))
                #expect(try server.exchange(put).status == 201)
                for request in [Request.page("/files/\(name)"), .get("/files/\(name)").with("Accept", "*/*")] {
                    let file = try server.exchange(request)
                    let policy = try #require(file.value("Content-Security-Policy"))
                    #expect(policy.hasPrefix("sandbox; default-src 'none'") && !policy.contains("script-src"))
                    #expect(file.value("X-Content-Type-Options") == "nosniff")
                    #expect(file.value("Cross-Origin-Resource-Policy") == "same-origin")
                    let disposition = file.value("Content-Disposition")
                    #expect(disposition?.hasPrefix("attachment") == (options.isEmpty ? true : nil), "\(name)")
                }
            }
        }
    }

    @Test("without a valid token a browser gets the page without rows, with the status of the refusal")
    func refusals() throws {
        let fixture = try TokenFixture("anna \(Self.token)\nbox token-of-box-0123456789 prefix=/files/box/")
        let server = fixture.server
        #expect(
            try server.exchange(Request("PUT", "/files/secret", [], .bytes([1])).with(token: Self.token)).status == 201)
        for (token, status) in [(nil, 401), ("token-of-nobody-012345", 401), ("token-of-box-0123456789", 403)] {
            let page = try server.exchange(.page("/files/").with(token: token))
            #expect(page.status == status && page.value("Cache-Control") == "no-store")
            #expect(page.value("WWW-Authenticate")?.hasPrefix("Bearer ") == true)
            #expect(page.text.contains(" data-status=\"\(status)\"") && page.text.contains("<tbody></tbody>"))
            #expect(!page.text.contains("secret\""))
        }
        #expect(try server.exchange(.page("/files/").with(token: Self.token)).text.contains("\"./secret\""))
    }

    @Test("a route on / takes the place of the page there, and the page is below --own-prefix")
    func routes() throws {
        let application = try AuthorizingApplication()
        let route = ["--route", "/=\(application.origin.url),access=open"]
        let fixture = try TokenFixture("anna \(Self.token)", route)
        #expect(try fixture.server.exchange(.page("/")).text == "made")
        #expect(try fixture.server.exchange(.page("/files/").with(token: Self.token)).text.contains("data-folder"))
        let prefixed = try TokenFixture("anna \(Self.token)", route + ["--own-prefix", "/a%20b"])
        #expect(try prefixed.server.exchange(.page("/a%20b/")).text == "made")
        let page = try prefixed.server.exchange(.page("/a%20b/files/").with(token: Self.token))
        #expect(page.text.contains("data-base=\"/a%20b/\" data-folder=\"/a%20b/files/\""))
        let usage = try prefixed.server.exchange(.get("/a%20b/onward/usage").with(token: Self.token))
        #expect(usage.status == 200)
        let upload = Request.creation(.v8, "PUT", "/a%20b/files/x", complete: false, .bytes([1]))
        let location = try #require(try prefixed.server.exchange(upload.with(token: Self.token)).location)
        #expect(location.hasPrefix("/a%20b/uploads/"))
        #expect(try prefixed.server.exchange(.retrieval(.v8, location).with(token: Self.token)).offset == 1)
        let alone = try TokenFixture("anna \(Self.token)", ["--own-prefix", "/.onward"])
        for target in ["/.onward/", "/.onward/files"] {
            let page = try alone.server.exchange(.page(target).with(token: Self.token))
            #expect(page.text.contains("data-base=\"/.onward/\" data-folder=\"/.onward/files/\""), "\(target)")
        }
        #expect(try alone.server.exchange(.page("/").with(token: Self.token)).status == 404)
        #expect(try alone.server.exchange(.page("/.onward").with(token: Self.token)).status == 404)
    }

    @Test("a listing in JSON finds names by their beginning")
    func search() throws {
        try withServer { server in
            for name in ["a", "ab", "abc", "b", "%C3%A9t%C3%A9", "a%20b"] { try server.publish([1], as: "d/" + name) }
            func names(_ query: String) throws -> [String] {
                var found: [String] = []
                var next: String? = "/files/d/?" + query
                while let target = next {
                    let page = try server.exchange(.listing(target))
                    #expect(page.status == 200)
                    found += page.text.matches(of: /"name":"([^"]*)"/).map { String($0.1) }
                    next = page.nextPage
                }
                return found
            }
            #expect(try names("prefix=a") == ["a", "a b", "ab", "abc"])
            #expect(try names("prefix=a&limit=1") == ["a", "a b", "ab", "abc"])
            #expect(try names("prefix=%C3%A9") == ["été"])
            #expect(try names("prefix=A").isEmpty)
            #expect(try names("prefix=a+b&after=a") == ["a b"])
            let wrong = try server.exchange(.listing("/files/d/?prefix=a%2F"))
            #expect(wrong.status == 400 && wrong.problem?.code == "invalid-prefix")
        }
    }
}

extension Request {
    /// A request as browsers send it for a page.
    static func page(_ target: String) -> Request {
        get(target).with("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8")
    }
}
