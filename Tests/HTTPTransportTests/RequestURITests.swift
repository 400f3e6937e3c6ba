import HTTPSemantics
import Testing

@testable import HTTPTransport

@Suite struct RequestURITests {
    @Test(
        "CLI-24: Location is resolved against the URI of the request",
        arguments: [
            ("../u/1", "https://host.example/a/u/1"), ("/u/1", "https://host.example/u/1"),
            ("u/1?x=y", "https://host.example/a/b/u/1?x=y"), ("//host.example/u", "https://host.example/u"),
            ("https://host.example:443/u", "https://host.example:443/u"), ("?n=1", "https://host.example/a/b/c?n=1"),
            ("/a/../u/1", "https://host.example/u/1"), ("/u/.x", "https://host.example/u/.x"),
            ("/u%201", "https://host.example/u%201"), ("/", "https://host.example/"),
            ("https://me:pass@host.example/u#part", "https://host.example/u"),
            ("HTTPS://HOST.example/u", "HTTPS://HOST.example/u"),
        ])
    func resolution(reference: String, expected: String) throws {
        let base = try #require(RequestURI("https://host.example/a/b/c?q=1"))
        let location = try #require(base.location(reference))
        #expect(location.uri.lowercased() == expected.lowercased())
        #expect(location.relation == .sameOrigin)
    }

    @Test(
        "another origin is distinguished from a change from https to http",
        arguments: [
            ("https://host.example/", "https://other.example/u", ResolvedLocation.Relation.otherOrigin),
            ("https://host.example/", "https://host.example:444/u", .otherOrigin),
            ("https://host.example/", "http://host.example/u", .insecure),
            ("https://host.example/", "http://other.example/u", .insecure),
            ("http://host.example/", "https://host.example/u", .otherOrigin),
            ("http://host.example/", "//other.example/u", .otherOrigin),
            ("http://host.example:80/", "http://host.example/u", .sameOrigin),
            ("http://[::1]:8080/", "http://[::1]:8080/u", .sameOrigin),
        ])
    func relations(base: String, reference: String, relation: ResolvedLocation.Relation) throws {
        #expect(try #require(RequestURI(base)).location(reference)?.relation == relation)
    }

    @Test(
        "a URI that is not http or https is not accepted as a location",
        arguments: ["ftp://host.example/u", "", "mailto:a@b.example"])
    func unusable(reference: String) throws {
        #expect(try #require(RequestURI("http://host.example/")).location(reference) == nil)
    }

    @Test("only absolute http and https URIs are accepted", arguments: ["", "/a", "host", "file:///a", "http:///a"])
    func invalid(text: String) {
        #expect(RequestURI(text) == nil)
    }

    @Test("userinfo is removed from the URI and becomes Basic credentials")
    func userinfo() throws {
        let uri = try #require(RequestURI("http://me:p%40ss@host.example/a#b"))
        #expect(uri.text == "http://host.example/a")
        #expect(uri.basicCredentials == "Basic bWU6cEBzcw==")
        #expect(RequestURI("http://host.example/")?.basicCredentials == nil)
    }

    @Test(
        "the port of a URI is found without parsing the URI",
        arguments: [
            "http://host.example", "https://host.example/a:1/b", "http://host.example:81?x=:2",
            "HTTPS://host.example:8443/", "http://[2001:db8::1]/", "http://[2001:db8::1]:81/",
        ])
    func port(_ text: String) throws {
        #expect(RequestURI.port(of: text) == (try #require(RequestURI(text)).port))
    }
}
