import HTTPSemantics
import Testing

@testable import TransferServer

@Suite("The public base of URLs")
struct PublicBaseTests {
    @Test(
        "Absolute http and https URLs are accepted and normalized",
        arguments: [
            ("https://files.example", "https://files.example"), ("https://files.example/", "https://files.example"),
            ("HTTPS://Files.Example:8443/in/box/", "https://files.example:8443/in/box"),
            ("http://[2001:db8::1]/a%20b", "http://[2001:db8::1]/a%20b"),
        ])
    func urls(text: String, expected: String) {
        #expect(PublicBase(url: text)?.description == expected)
    }

    @Test(
        "Other texts are refused as public URLs",
        arguments: [
            "", "files.example", "/inbox", "ftp://files.example", "https://", "https:///x",
            "https://user@files.example",
            "https://files.example/?x", "https://files.example/#x", "https://files.example//x",
            "https://files.example/../x",
            "https://files.example/a b",
        ])
    func noURLs(text: String) {
        #expect(PublicBase(url: text) == nil)
    }

    @Test(
        "Path prefixes are accepted and normalized",
        arguments: [("/", ""), ("/a", "/a"), ("/a/", "/a"), ("/a/b%2Dc", "/a/b-c"), ("/a:b@c", "/a:b@c")])
    func prefixes(text: String, expected: String) {
        #expect(PublicBase(prefix: text)?.description == expected)
    }

    @Test(
        "Malformed prefixes and prefixes that could lead to another host are refused",
        arguments: [
            "", "a", "//evil.example", "//evil.example/", "/a//b", "/..", "/a/%2e%2e", "/%2F%2Fevil.example", "/\\evil",
            "/a?b",
            "/a#b", "/a b", "/a\r\nSet-Cookie: x", "https://evil.example", "/a%0d%0ab",
        ])
    func noPrefixes(text: String) {
        #expect(PublicBase(prefix: text) == nil)
    }

    @Test("Only references to the server's own paths are changed")
    func fields() throws {
        let base = try #require(PublicBase(url: "https://files.example/in"))
        let fields: Fields = ["Location": "/uploads/1", "Content-Location": "/files/a", "Link": "/x"]
        #expect(
            base.rebased(fields) == [
                "Location": "https://files.example/in/uploads/1",
                "Content-Location": "https://files.example/in/files/a",
                "Link": "/x",
            ])
        for foreign in ["https://other.example/a", "//other.example/a", "relative", "?x"] {
            #expect(base.rebased(["Location": foreign]) == ["Location": foreign])
        }
        #expect(PublicBase().rebased(fields) == fields)
    }
}
