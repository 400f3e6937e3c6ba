import HTTPSemantics
import TestSupport
import Testing

@Suite struct MessageHeadTests {
    @Test("every status has a class and a reason phrase, even if it is not registered")
    func statusClassesAndPhrases() {
        #expect(Status.uploadResumptionSupported == 104)
        #expect(Status(rawValue: 104).reasonPhrase == "Upload Resumption Supported")
        #expect((507 as Status).reasonPhrase == "Insufficient Storage")
        #expect(Status.`continue`.isInformational && !Status.ok.isInformational)
        #expect(Status.partialContent.isSuccessful && Status.found.isRedirection)
        #expect(Status.rangeNotSatisfiable.isClientError && Status.insufficientStorage.isServerError)
        #expect(Status(rawValue: 299).reasonPhrase == "Successful")
        #expect(Status(rawValue: 799).reasonPhrase == "Unknown")
        #expect(
            Status.noContent.isContentForbidden && Status.notModified.isContentForbidden
                && !Status.ok.isContentForbidden)
        #expect("\(Status.created)" == "201")
    }

    @Test func methodsAreCaseSensitive() {
        #expect(Method(rawValue: "get") != .get)
        #expect([Method.get, .head, .options, .trace].allSatisfy { $0.isSafe })
        #expect(![Method.post, .put, .patch, .delete, .connect, Method(rawValue: "get")].contains { $0.isSafe })
    }

    @Test("versions are read, written and compared")
    func versions() {
        #expect(ProtocolVersion.http10 < .http11)
        #expect(ProtocolVersion(parsing: "HTTP/1.1") == .http11)
        #expect("\(ProtocolVersion.http10)" == "HTTP/1.0")
        for text in ["http/1.1", "HTTP/1", "HTTP/1.10", "HTTP/1,1", "", "HTTP/x.1"] {
            #expect(ProtocolVersion(parsing: text) == nil)
        }
    }

    @Test(
        "targets in origin-form and asterisk-form are read",
        arguments: [
            ("/a/b?c=d?e", RequestTarget.Form.origin, "/a/b", "c=d?e"), ("/", .origin, "/", nil),
            ("//x", .origin, "//x", nil),
            ("/?", .origin, "/", ""), ("*", .asterisk, "*", nil), ("/a%2Fb|{}", .origin, "/a%2Fb|{}", nil),
        ] as [(String, RequestTarget.Form, String, String?)])
    func targets(target: String, form: RequestTarget.Form, path: String, query: String?) throws {
        let parsed = try #require(RequestTarget(parsing: target))
        #expect(parsed.form == form && parsed.path == path && parsed.query == query)
        #expect(parsed.authority == nil && parsed.scheme == nil)
    }

    @Test(
        "H11-26: absolute-form gives the same path as origin-form",
        arguments: [
            ("http://host/files", "http", "host", "/files", nil),
            ("HTTPS://Host:8443/f?q", "https", "Host:8443", "/f", "q"),
            ("http://host", "http", "host", "/", nil), ("http://[::1]:80?x", "http", "[::1]:80", "/", "x"),
        ] as [(String, String, String, String, String?)])
    func absoluteTargets(target: String, scheme: String, authority: String, path: String, query: String?) throws {
        let parsed = try #require(RequestTarget(parsing: target))
        #expect(parsed.form == .absolute && parsed.scheme == scheme && parsed.authority == authority)
        #expect(parsed.path == path && parsed.query == query)
    }

    @Test(arguments: [
        "", "files", "host:443", "ftp://host/", "http:///x", "http://", "http://user@host/", "/a b", "/a#b", "/é",
        "/a\0",
        "**", "*/", "http://[::1/", "http://host:99999/", "http:/host", "?q",
    ])
    func refusedTargets(target: String) {
        #expect(RequestTarget(parsing: target) == nil)
    }

    @Test(
        "the host and the port of an authority are read",
        arguments: [
            ("example.com", "example.com", nil), ("EXAMPLE.com:80", "example.com", 80), ("host:", "host", nil),
            ("127.0.0.1:0", "127.0.0.1", 0), ("[2001:DB8::1]:443", "[2001:db8::1]", 443), ("[::]", "[::]", nil),
            ("[1::]", "[1::]", nil), ("[1:2:3:4:5:6:7:8]", "[1:2:3:4:5:6:7:8]", nil),
            ("[::ffff:1.2.3.4]", "[::ffff:1.2.3.4]", nil),
            ("[v1.x:y]", "[v1.x:y]", nil), ("a%20b", "a%20b", nil), ("h:00080", "h", 80),
        ] as [(String, String, Int?)])
    func authorities(text: String, host: String, port: Int?) {
        let authority = Authority(parsing: text)
        #expect(authority?.host == host && authority?.port == port)
    }

    @Test(arguments: [
        "", ":80", "a b", "a:b", "a:65536", "a:1:2", "u@h", "a/b", "é", "[::1", "::1", "[1]", "[:1:2]", "[1:2:]",
        "[:::]",
        "[1::2::3]", "[1:2:3:4:5:6:7:8:9]", "[12345::]", "[::1.2.3]", "[::1.2.3.256]", "[::01.2.3.4]",
        "[fe80::1%25eth0]",
        "a%2", "a%zz", "[v.x]", "[]", "a:-1", "a:+1",
    ])
    func refusedAuthorities(text: String) {
        #expect(Authority(parsing: text) == nil)
    }

    @Test(arguments: SeededGenerator.seeds)
    func arbitraryTargetsNeverCrash(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array("htps:/?#[]@.%25aF0*1v")
        for index in 0..<SeededGenerator.count(4_000) {
            let text =
                switch index % 4 {
                case 0: generator.unicode(upTo: 20)
                case 1: generator.string(from: alphabet, upTo: 20)
                case 2: generator.mutate("[2001:db8::1.2.3.4]:8080")
                default: generator.mutate("http://[::1]:8080/a%20b?c")
                }
            if let authority = Authority(parsing: text) {
                #expect(Authority(parsing: authority.serialized) == authority, "\(text.debugDescription)")
                #expect(!authority.host.isEmpty)
            }
            if let target = RequestTarget(parsing: text) {
                #expect(target.path.hasPrefix("/") || target.form == .asterisk, "\(text.debugDescription)")
                #expect((target.authority == nil) == (target.form != .absolute), "\(text.debugDescription)")
            }
            _ = ProtocolVersion(parsing: text)
        }
    }
}
