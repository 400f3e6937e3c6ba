import HTTPSemantics
import Testing

@Suite("Accept")
struct AcceptFieldTests {
    @Test(
        "a type that is written in full has the weight of its q, in thousandths",
        arguments: [
            ("application/json", 1000), ("Application/JSON", 1000), ("text/html, application/json;q=0.5", 500),
            ("application/json;q=0", 0), ("application/json; q=0.001", 1), ("application/json;Q=1.000", 1000),
            ("application/json;v=\"a, b;q=0\";q=0.2", 200), ("application/json;q=0.1, application/json;q=0.3", 300),
            (", application/json ,", 1000), ("*/*, application/json;q=0.9", 900), ("application/json;q=1.", 1000),
        ])
    func weights(value: String, weight: Int) throws {
        let field = try #require(AcceptField(fieldLines: [value]))
        #expect(field.weight(ofListedType: "application/json") == weight)
    }

    @Test(
        "a type that is matched only by a wildcard, or not at all, has no weight",
        arguments: ["*/*", "application/*", "text/html", "", "application/jsonp"])
    func unnamed(value: String) throws {
        let field = try #require(AcceptField(fieldLines: [value]))
        #expect(field.weight(ofListedType: "application/json") == nil)
    }

    @Test("several field lines form one list")
    func lines() throws {
        let field = try #require(AcceptField(fieldLines: ["text/html;q=0.5", "application/json"]))
        #expect(field.weight(ofListedType: "text/html") == 500)
        #expect(field.weight(ofListedType: "application/json") == 1000)
        #expect(try #require(AcceptField(fieldLines: [])).weight(ofListedType: "text/html") == nil)
    }

    @Test(
        "malformed values count as absent",
        arguments: [
            "json", "application/", "/json", "application/json;q=2", "application/json;q=0.1234",
            "application/json;q=x",
            "application/json;q=-1", "application/json;q=1.001", "application/json;q=\"\"", "application/json;q",
            "*/json", "application/json text/html", "application/json;q=.5", "a/b;q=\"0",
        ])
    func malformed(value: String) {
        #expect(AcceptField(fieldLines: [value]) == nil)
    }
}
