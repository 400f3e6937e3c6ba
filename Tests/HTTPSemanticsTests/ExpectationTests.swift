import HTTPSemantics
import Testing

@Suite struct ExpectationTests {
    @Test(
        "only 100-continue is a supported expectation",
        arguments: [
            ([], .none), ([""], .none), (["100-continue"], .continue100), (["100-Continue"], .continue100),
            ([" 100-continue ,"], .continue100),
            (["100-continue", "100-CONTINUE"], .continue100), (["100-continue, foo"], .unsupported),
            (["foo"], .unsupported),
            (["100-continue;x=y"], .unsupported), (["100-continue=1"], .unsupported),
            (["\"100-continue\""], .unsupported),
            (["100 continue"], .unsupported),
        ] as [([String], HTTPSemantics.Expectation)])
    func expectations(lines: [String], expected: HTTPSemantics.Expectation) {
        #expect(HTTPSemantics.Expectation(fields: Fields(lines.map { ("expect", $0) })) == expected)
    }

    @Test("HTTP/1.0 ignores 100-continue and refuses other expectations")
    func oldVersion() {
        #expect(HTTPSemantics.Expectation(fields: ["Expect": "100-continue"], version: .http10) == .none)
        #expect(HTTPSemantics.Expectation(fields: ["Expect": "foo"], version: .http10) == .unsupported)
    }
}
