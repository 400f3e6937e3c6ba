import Testing

@testable import TransferServer

@Suite("The query of a listing")
struct ListingQueryTests {
    @Test("the default is the first thousand entries, and unknown parameters are ignored")
    func defaults() throws {
        for query in [nil, "", "x=1", "sort=name&limits=3", "&&"] {
            #expect(try ListingQuery(parsing: query) == ListingQuery(limit: 1000, cursor: nil), "\(query ?? "none")")
        }
    }

    @Test(
        "limit and cursor are read",
        arguments: [
            ("limit=1", 1, nil), ("limit=10000", 10_000, nil), ("limit=0007", 7, nil), ("after=b", 1000, "b"),
            ("limit=5&after=a%20b", 5, "a b"), ("after=a+b&limit=5", 5, "a b"), ("after=a%2Bb", 1000, "a+b"),
            ("after=a%26b%3Dc", 1000, "a&b=c"), ("after=a=b", 1000, "a=b"), ("after=%C3%A9", 1000, "é"),
            ("after=100%25", 1000, "100%"), ("after=..a", 1000, "..a"),
        ] as [(String, Int, String?)])
    func values(query: String, limit: Int, cursor: String?) throws {
        let parsed = try ListingQuery(parsing: query)
        #expect(parsed == ListingQuery(limit: limit, cursor: cursor))
        if let cursor {
            #expect(try ListingQuery(parsing: parsed.serialized(after: cursor)) == parsed)
        }
    }

    @Test(
        "an invalid limit is refused",
        arguments: [
            "limit", "limit=", "limit=0", "limit=-1", "limit=10001", "limit=1e3", "limit=+5",
            "limit=99999999999999999999",
            "limit=5&limit=5", "limit=%31", "limit=٣", "limit=1.0",
        ])
    func limits(query: String) {
        #expect(throws: ListingQuery.Refusal.invalidLimit) { try ListingQuery(parsing: query) }
    }

    @Test(
        "a prefix is the beginning of names, and stays in the link to the next page",
        arguments: [
            ("prefix=", ""), ("prefix=.", "."), ("prefix=..", ".."), ("prefix=%2E%2e", ".."), ("prefix=a%20b", "a b"),
            ("prefix=a+b", "a b"), ("prefix=%C3%A9", "é"), ("prefix=a&limit=1000", "a"), ("prefix=a%26b%3D", "a&b="),
            ("prefix=" + String(repeating: "a", count: 255), String(repeating: "a", count: 255)),
        ])
    func prefixes(query: String, prefix: String) throws {
        let parsed = try ListingQuery(parsing: query)
        #expect(parsed == ListingQuery(prefix: prefix))
        let next = try ListingQuery(parsing: parsed.serialized(after: "a b&"))
        #expect(next == ListingQuery(cursor: "a b&", prefix: prefix))
        #expect(parsed.serialized(after: "x").contains("prefix") == !prefix.isEmpty)
    }

    @Test(
        "a prefix that no name can have is refused",
        arguments: [
            "prefix=a/", "prefix=/", "prefix=a%2Fb", "prefix=%00", "prefix=%zz", "prefix=%C3", "prefix=a%5C",
            "prefix=a&prefix=a", "prefix=&prefix=", "prefix=" + String(repeating: "a", count: 256),
        ])
    func invalidPrefixes(query: String) {
        #expect(throws: ListingQuery.Refusal.invalidPrefix) { try ListingQuery(parsing: query) }
    }

    @Test(
        "a cursor that cannot be a name is refused",
        arguments: [
            "after", "after=", "after=.", "after=..", "after=a/b", "after=a%2Fb", "after=%00", "after=%0A", "after=%zz",
            "after=%ff", "after=a&after=b", "after=a/", "after=a%5Cb", "after=a?b",
            "after=" + String(repeating: "a", count: 256),
        ])
    func cursors(query: String) {
        #expect(throws: ListingQuery.Refusal.invalidCursor) { try ListingQuery(parsing: query) }
    }
}
