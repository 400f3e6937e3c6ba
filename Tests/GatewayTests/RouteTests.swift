import HTTPSemantics
import Testing

@testable import Gateway

@Suite("Routes")
struct RouteTests {
    /// Parses a line in which durations are numbers of seconds.
    private func route(_ line: String) throws(SettingError) -> Route {
        try Route(parsing: line) { text in
            guard text.hasSuffix("s"), let seconds = Int64(text.dropLast()), seconds >= 0 else { return nil }
            return .seconds(seconds)
        }
    }

    private func mistakes(_ line: String) -> String? {
        do throws(SettingError) { _ = try route(line) } catch { return error.description }
        return nil
    }

    @Test("a route without settings")
    func defaults() throws {
        let route = try route("/upload=http://127.0.0.1:3000")
        #expect(route.path == "/upload" && route.prefix == "upload" && route.segments == ["upload"])
        #expect(route.origin.description == "http://127.0.0.1:3000")
        #expect(route.access == .authorized && !route.isRepeatable)
        #expect(route.timeout == .seconds(60) && route.retryTime == .seconds(10))
        #expect(route.handoverDirectory == nil)
        #expect(try self.route("/a=http://h,handover=/srv/a~b=c%20").handoverDirectory == "/srv/a~b=c%20")
    }

    @Test(
        "settings are separated by commas or white space, in any order",
        arguments: [
            "/a/b=unix:/run/app.sock,access=open,repeat=safe,timeout=5s,retry=0s",
            "  /a/b=unix:/run/app.sock \t retry=0s timeout=5s repeat=safe access=open  ",
            "/a/b/=unix:/run/app.sock, timeout=5s,,access=open retry=0s,repeat=safe,",
        ])
    func settings(line: String) throws {
        let route = try route(line)
        #expect(route.path == "/a/b" && route.segments == ["a", "b"])
        #expect(route.origin.description == "unix:/run/app.sock")
        #expect(route.access == .open && route.isRepeatable)
        #expect(route.timeout == .seconds(5) && route.retryTime == .zero)
    }

    @Test(
        "a path is decoded once",
        arguments: [
            ("/", "/", []), ("/a", "/a", ["a"]), ("/a/", "/a", ["a"]), ("/%61", "/a", ["a"]),
            ("/a%20b", "/a b", ["a b"]),
            ("/a%2525", "/a%25", ["a%25"]), ("/a%3Db", "/a=b", ["a=b"]), ("/%C3%A9", "/é", ["é"]),
        ] as [(String, String, [String])])
    func paths(text: String, path: String, segments: [String]) throws {
        for route in [try route(text + "=http://h"), try Route(path: text, origin: Origin(parsing: "http://h"))] {
            #expect(route.path == path)
            #expect(route.segments == segments)
            #expect(route.prefix == String(path.dropFirst()))
        }
    }

    @Test(
        "each mistake is reported with the text that contains it",
        arguments: [
            ("", "'' is not a route"), (" , ", "is not a route"), ("/upload", "'/upload' is not a route"),
            ("=http://h", "'' is not a path"), ("upload=http://h", "'upload' is not a path"),
            ("/../a=http://h", "'/../a' is not a path"), ("/%2e%2E=http://h", "'/%2e%2E' is not a path"),
            ("/a%2Fb=http://h", "'/a%2Fb' is not a path"), ("//a=http://h", "'//a' is not a path"),
            ("/a%=http://h", "'/a%' is not a path"), ("/a?x=http://h", "'/a?x' is not a path"),
            ("/a=", "'' is not an origin"), ("/a=localhost:3000", "'localhost:3000' is not an origin"),
            ("/a=http://h/base", "an origin has no path"), ("/a=unix:app.sock", "absolute path of a socket"),
            ("/a=http://h,access", "'access': use access=open"),
            ("/a=http://h,access=", "'access=': use access=open"),
            ("/a=http://h,access=closed", "'access=closed': use access=open"),
            ("/a=http://h,ACCESS=open", "'ACCESS=open' is not a setting"),
            ("/a=http://h,repeat", "'repeat': use repeat=safe"),
            ("/a=http://h,repeat=unsafe", "'repeat=unsafe': use repeat=safe"),
            ("/a=http://h,timeout=0s", "'timeout=0s': give a duration"),
            ("/a=http://h,timeout=-1s", "'timeout=-1s': give a duration"),
            ("/a=http://h,timeout", "'timeout': give a duration"),
            ("/a=http://h,retry=soon", "'retry=soon': give a duration"),
            ("/a=http://h,color=red", "'color=red' is not a setting"),
            ("/a=http://h,handover", "'handover': give the absolute path of a directory"),
            ("/a=http://h,handover=srv/a", "'handover=srv/a': give the absolute path"),
            ("/a=http://h,handover=/", "'handover=/': give the absolute path"),
            ("/a=http://h,handover=/srv/../a", "'handover=/srv/../a': give the absolute path"),
            ("/a=http://h,handover=/srv//a", "'handover=/srv//a': give the absolute path"),
            ("/a=http://h,handover=/srv/a/", "'handover=/srv/a/': give the absolute path"),
            ("/a=http://h,handover=/srv/\u{7}", "'handover=/srv/\u{7}': give the absolute path"),
            ("/a=http://h,handover=/srv/é", "'handover=/srv/é': give the absolute path"),
            ("/a=http://h,access=open,access=open", "access is given twice"),
            ("/a=http://h,timeout=1s timeout=2s", "timeout is given twice"),
        ])
    func mistakes(line: String, mistake: String) throws {
        let text = try #require(mistakes(line))
        #expect(text.contains(mistake), "\(text)")
    }

    @Test("all mistakes of a line are reported at once")
    func allMistakes() throws {
        let text = try #require(mistakes("a/..=ftp://h access=closed repeat=no,timeout=x retry=y color=red color=blue"))
        for mistake in [
            "'a/..' is not a path", "'ftp://h' is not an origin", "'access=closed'", "'repeat=no'", "'timeout=x'",
            "'retry=y'", "'color=red'", "color is given twice", "'color=blue'",
        ] {
            #expect(text.contains(mistake), "\(mistake): \(text)")
        }
        #expect(text.split(separator: ";").count == 9)
    }
}

@Suite("Origins")
struct OriginTests {
    @Test(
        "an origin is a scheme and an authority, or a socket, and possibly a path after it",
        arguments: [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000", "/"), ("http://h", "http://h", "/"),
            ("https://h:8443", "https://h:8443", "/"), ("https://H.example/", "https://H.example", "/"),
            ("HTTPS://h/x", "https://h", "/x"), ("http://[::1]:80/a/b", "http://[::1]:80", "/a/b"),
            ("http://[2001:db8::1]", "http://[2001:db8::1]", "/"), ("http://h/a?b=c", "http://h", "/a?b=c"),
            ("http://h?b=c", "http://h", "/?b=c"), ("unix:/run/app.sock", "unix:/run/app.sock", "/"),
            ("unix:/run/app.sock:/auth?x=a:b", "unix:/run/app.sock", "/auth?x=a:b"),
        ])
    func origins(text: String, origin: String, target: String) throws {
        let (parsed, path) = try Origin.parse(text)
        #expect(parsed.description == origin)
        #expect(path == target)
        #expect(try Origin(parsing: origin) == parsed)
        #expect(parsed.url == (origin.hasPrefix("unix:") ? "http://localhost/" : origin + "/"))
        #expect((parsed.settings(connectTimeout: .seconds(1)).unixSocket != nil) == origin.hasPrefix("unix:"))
    }

    @Test(
        "a text that is no origin is rejected",
        arguments: [
            "", "h", "h:80", "//h", "/path", "ftp://h", "ws://h", "http:", "http:/h", "http://", "http:///a",
            "http://:80",
            "http://u@h", "http://u:p@h", "http://[::1", "http://::1", "http://h:port", "http://h:65536", "http://h:-1",
            "http://a b", "http://h#f", "http://h/\u{E9}", "http://h\r\n", "*", "unix:", "unix:app.sock",
            "unix:./app.sock",
            "unix:/app.sock:auth", "unix:/app.sock:", "unix:/" + String(repeating: "x", count: 107),
        ])
    func invalid(text: String) {
        #expect(throws: SettingError.self) { try Origin.parse(text) }
        #expect(throws: SettingError.self) { try Origin(parsing: text) }
    }

    @Test(
        "the origin of a route has no path",
        arguments: ["http://h/a", "http://h/?", "http://h?", "http://h?a", "unix:/s:/a"])
    func noPath(text: String) {
        #expect(throws: SettingError.self) { try Origin(parsing: text) }
    }

    @Test("a socket can have a path of 107 bytes")
    func longestSocket() throws {
        let path = "/" + String(repeating: "x", count: 106)
        #expect(try Origin(parsing: "unix:" + path).description == "unix:" + path)
    }

    @Test("the URL of an application that authorizes is checked in the same way")
    func authorizationURL() throws {
        for url in ["http://127.0.0.1:1/auth", "https://h/", "unix:/run/app.sock:/auth"] {
            #expect(throws: Never.self) { try ApplicationAuthorizer(url: url) }
        }
        for url in ["", "/auth", "127.0.0.1:1/auth", "ftp://h/auth", "unix:app.sock", "http://u:p@h/auth"] {
            #expect(throws: SettingError.self) { try ApplicationAuthorizer(url: url) }
        }
    }
}
