import HTTPSemantics
import Testing

@Suite struct FieldsTests {
    @Test("STF-11: field names are case-insensitive")
    func caseInsensitiveNames() {
        let fields: Fields = ["upload-OFFSET": "5"]
        #expect(fields["Upload-Offset"] == "5")
        #expect(fields.contains("UPLOAD-offset"))
        #expect(fields.values("upload-offset") == ["5"])
        #expect(fields == ["Upload-Offset": "5"])
        #expect(fields.hashValue == (["Upload-Offset": "5"] as Fields).hashValue)
        #expect(fields != ["Upload-Offset": "6"])
        #expect(fields["Upload-Offse"] == nil)
    }

    @Test func connectionOptionsOfAllLines() {
        // U+0301 would be a part of the character before it.
        let fields: Fields = ["Connection": "keep-alive,\tX-One ,,\u{301}x", "connection": "Close"]
        #expect(fields.connectionOptions == ["keep-alive", "X-One", "\u{301}x", "Close"])
        #expect(fields.hasConnectionOption("close") && !fields.hasConnectionOption("x"))
        #expect(([:] as Fields).connectionOptions == [])
    }

    @Test func onlyASCIILettersFold() {
        // The lower case of U+212A KELVIN SIGN is "k" in Unicode.
        let fields: Fields = ["\u{212A}": "kelvin", "[": "bracket"]
        #expect(fields["k"] == nil)
        #expect(fields["{"] == nil)
    }

    @Test func linesStayApartAndInOrder() {
        var fields = Fields([("A", "1"), ("B", " 2\t"), ("a", "3")])
        #expect(fields.count == 3)
        #expect(fields.map(\.name) == ["A", "B", "a"])
        #expect(fields.values("a") == ["1", "3"])
        #expect(fields["a"] == "1, 3")
        #expect(fields["b"] == "2")
        fields.append("b", "")
        #expect(fields["B"] == "2, ")
        fields.remove("A")
        #expect(fields.map(\.value) == [" 2\t", ""])
        #expect(!fields.isEmpty && Fields().isEmpty)
    }

    @Test func whiteSpaceIsRemovedAtEachEndOfAValue() {
        // U+0600 and the space after it are one character, and so are a space and U+0301.
        let fields: Fields = ["A": "\t \u{301}x\u{0600} \t", "B": " \t"]
        #expect(fields.values("a").map { Array($0.utf8) } == [Array("\u{301}x\u{0600}".utf8)])
        #expect(fields["b"] == "")
    }

    @Test func setKeepsThePositionOfTheFirstLine() {
        var fields = Fields([("x", "0"), ("A", "1"), ("y", "2"), ("a", "3"), ("z", "4")])
        fields.set("a", "new")
        #expect(fields.map(\.value) == ["0", "new", "2", "4"])
        fields.set("last", "5")
        #expect(fields.map(\.name) == ["x", "a", "y", "z", "last"])
    }

    @Test(
        "SEC-18: values that would split a message are recognized",
        arguments: [
            "a\r\nSet-Cookie: x", "a\nb", "a\rb", "a\0b", "\u{1B}[0m", "a\u{7F}", "\u{0B}",
        ])
    func invalidValues(value: String) {
        #expect(!Fields.isValidValue(value))
        #expect(Fields([("Good", "x"), ("Location", value)]).firstInvalid?.name == "Location")
    }

    @Test("SEC-18: harmless values are accepted", arguments: ["", " a ", "a\tb", "é", "\u{1F600}", "\"q\\\"\"", "~!"])
    func validValues(value: String) {
        #expect(Fields.isValidValue(value))
        #expect(Fields([("Location", value)]).firstInvalid == nil)
    }

    @Test("SEC-18: names must be tokens", arguments: ["", "a b", "a:", "a\r\n", "é", "(x)", "a\"", "a ", "a\0"])
    func invalidNames(name: String) {
        #expect(!Fields.isValidName(name))
        #expect(Fields([(name, "")]).firstInvalid != nil)
    }

    @Test("every token is a valid field name")
    func validNames() {
        #expect(Fields.isValidName("!#$%&'*+-.^_`|~09azAZ"))
    }
}
