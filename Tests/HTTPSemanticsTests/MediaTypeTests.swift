import HTTPSemantics
import TestSupport
import Testing

@Suite struct MediaTypeTests {
    @Test(arguments: [
        ("text/html", "text/html", "text/html"),
        ("Text/HTML;Charset=\"utf-8\"", "text/html", "text/html; charset=utf-8"),
        ("a/b ; c=D ;; e=\"x;\\\"y\" ;", "a/b", "a/b; c=D; e=\"x;\\\"y\""),
        ("application/partial-upload", "application/partial-upload", "application/partial-upload"),
        (" application/vnd.x+json;q=\"\"", "application/vnd.x+json", "application/vnd.x+json; q=\"\""),
    ])
    func parsed(value: String, essence: String, serialized: String) throws {
        let type = try #require(MediaType(parsing: value))
        #expect(type.essence == essence && type.serialized == serialized)
        #expect(MediaType(parsing: serialized) == type)
        #expect(type.matches(essence.uppercased()) && !type.matches(essence + "x"))
    }

    @Test(arguments: [
        "", "text", "text/", "/html", "text /html", "text/ html", "text/html;charset", "text/html; charset =utf-8",
        "text/html;a=\"b",
        "text/html, text/plain", "text/html;a=b c", "text/html;=b", "text/html x", "text/html;a=\"\u{1}\"",
        "text/html;a=\"b\"c", "é/x",
    ])
    func refused(value: String) {
        #expect(MediaType(parsing: value) == nil)
    }

    @Test("names of parameters are case-insensitive, and the first of two equal names counts")
    func parameters() throws {
        let type = try #require(MediaType(parsing: "a/b; X=1; x=2; y=\"a, b\""))
        #expect(type.parameter("X") == "1")
        #expect(type.parameter("Y") == "a, b")
        #expect(type.parameter("z") == nil)
        #expect(type.parameters.map(\.name) == ["x", "x", "y"])
        #expect(type.type == "a" && type.subtype == "b")
        #expect(MediaType(type: "Text", subtype: "Plain")?.essence == "text/plain")
        #expect(MediaType(type: "a b", subtype: "c") == nil)
        #expect(MediaType(type: "a", subtype: "b", parameters: [.init(name: "c", value: "d\r\n")]) == nil)
        #expect(MediaType(type: "a", subtype: "b", parameters: [.init(name: "", value: "d")]) == nil)
    }

    @Test(arguments: SeededGenerator.seeds)
    func arbitraryValuesNeverCrash(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for index in 0..<SeededGenerator.count(4_000) {
            let value =
                index % 3 == 0 ? generator.unicode(upTo: 20) : generator.mutate("text/html; charset=\"utf\\-8\"; x=y")
            guard let type = MediaType(parsing: value) else { continue }
            #expect(MediaType(parsing: type.serialized) == type, "\(value)")
        }
    }
}
