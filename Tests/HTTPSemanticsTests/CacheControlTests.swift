import HTTPSemantics
import Testing

@Suite("Cache-Control")
struct CacheControlTests {
    @Test(
        "values are kept, with names in lower case",
        arguments: [
            ("no-cache", "no-cache"), ("Max-Age=60", "max-age=60"),
            ("max-age=60,must-revalidate", "max-age=60, must-revalidate"),
            (" public , max-age=3600 ", "public, max-age=3600"),
            ("immutable, x-own=\"a, b\"", "immutable, x-own=\"a, b\""),
            ("private=\"Set-Cookie\"", "private=\"Set-Cookie\""), ("no-store,,", "no-store"),
        ])
    func values(value: String, serialized: String) throws {
        let parsed = try #require(CacheControl(parsing: value))
        #expect(parsed.serialized == serialized)
        #expect(CacheControl(parsing: serialized) == parsed)
    }

    @Test(
        "malformed values count as absent",
        arguments: [
            "", " ", ",", "max-age=", "max-age =60", "no cache", "max-age=60;public", "\"no-cache\"", "a=\"b",
            "a=\r\nx: y",
            "max-age=60\u{0}", "=60", "a=b=c",
        ])
    func malformed(value: String) {
        #expect(CacheControl(parsing: value) == nil)
    }

    @Test("directives for shared caches are recognized")
    func sharing() {
        #expect(CacheControl(parsing: "max-age=1, Public")?.sharingDirective == "public")
        #expect(CacheControl(parsing: "s-maxage=1")?.sharingDirective == "s-maxage")
        #expect(CacheControl(parsing: "max-age=1, publicity")?.sharingDirective == nil)
        #expect(CacheControl.noCache.sharingDirective == nil)
    }

    @Test("the value for one user makes the entire response private")
    func oneUser() throws {
        #expect(CacheControl.noCache.forOneUser.serialized == "private, no-cache")
        #expect(try #require(CacheControl(parsing: "max-age=1, private")).forOneUser.serialized == "max-age=1, private")
        // `private` with a field name leaves the other fields to shared caches.
        let qualified = try #require(CacheControl(parsing: "private=\"Set-Cookie\", max-age=1"))
        #expect(qualified.forOneUser.serialized == "private, private=\"Set-Cookie\", max-age=1")
    }
}
