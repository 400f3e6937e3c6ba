import StructuredFields
import Testing

/// The parsing of Items, on which the reading of the upload fields is based.
@Suite("Items")
struct ItemTests {
    @Test(
        "STF-01: an Integer may have leading zeros, -0 and parameters",
        arguments: [
            ("5", 5), ("005", 5), ("05;a=b", 5), ("5;x", 5), ("5; x;  y=1", 5), ("  5 ", 5), ("0", 0), ("-0", 0),
            ("000000000000005", 5),
        ])
    func integers(text: String, value: Int) throws {
        let item = try Item(parsing: text)
        #expect(item.value == .integer(value))
    }

    @Test(
        "STF-02: a plus sign and other malformed Integers fail",
        arguments: [
            ("+5", 0, .invalidItem), ("5;", 2, .unexpectedEnd), ("0x5", 1, .trailingCharacters),
            ("5 5", 2, .trailingCharacters), ("", 0, .unexpectedEnd), ("   ", 3, .unexpectedEnd),
            ("-", 1, .unexpectedEnd), ("--5", 1, .invalidNumber), ("- 5", 1, .invalidNumber), ("5.", 2, .invalidNumber),
            (".5", 0, .invalidItem), ("5.x", 2, .invalidNumber), ("5;A=1", 2, .invalidKey),
            ("5;a=", 4, .unexpectedEnd), ("5\t", 1, .trailingCharacters), ("\t5", 0, .invalidItem),
            ("5 ;a", 2, .trailingCharacters), ("5;a =1", 4, .trailingCharacters),
            ("5;a= 1", 4, .invalidItem), ("5\u{0}", 1, .trailingCharacters), ("5é", 1, .nonASCII),
        ] as [(String, Int, ParseFailure.Reason)])
    func noIntegers(text: String, offset: Int, reason: ParseFailure.Reason) {
        #expect(throws: ParseFailure(offset: offset, reason: reason)) { try Item(parsing: text) }
    }

    @Test(
        "STF-03: values of other types are not Integers",
        arguments: [
            ("\"5\"", .string("5")), ("?1", .boolean(true)),
            ("five", .token("five")), (":NQ==:", .byteSequence([0x35])), ("@5", .date(5)),
            ("%\"5\"", .displayString("5")),
        ] as [(String, BareItem)])
    func otherTypes(text: String, value: BareItem) throws {
        #expect(try Item(parsing: text).value == value)
    }

    @Test(
        "STF-04: negative Integers keep their sign",
        arguments: [("-1", -1), ("-05", -5), ("-999999999999999", -999_999_999_999_999)])
    func negativeIntegers(text: String, value: Int) throws {
        #expect(try Item(parsing: text).value == .integer(value))
    }

    @Test("STF-05: an Integer with 15 digits is parsed, an Integer with 16 digits fails")
    func fifteenDigits() throws {
        #expect(try Item(parsing: "999999999999999").value == .integer(999_999_999_999_999))
        for text in ["1000000000000000", "0000000000000005", "-1000000000000000", "9999999999999999999999999"] {
            #expect(throws: ParseFailure.self) { try Item(parsing: text) }
        }
        #expect(throws: ParseFailure(offset: 15, reason: .numberTooLong)) { try Item(parsing: "1000000000000000") }
        #expect(throws: ParseFailure.self) { try Item(parsing: "@1000000000000000") }
        #expect(throws: ParseFailure.self) { try Item(parsing: "1;a=1000000000000000") }
    }

    @Test("STF-05: a Decimal has at most 12 digits before the point and three digits after it")
    func decimalDigits() throws {
        let largest = try Item(parsing: "999999999999.999").value
        #expect(largest == Decimal(thousandths: 999_999_999_999_999).map(BareItem.decimal))
        #expect(throws: ParseFailure(offset: 13, reason: .numberTooLong)) { try Item(parsing: "1000000000000.0") }
        #expect(throws: ParseFailure(offset: 5, reason: .invalidNumber)) { try Item(parsing: "1.0000") }
    }

    @Test(
        "STF-06: an Item that is repeated, in lines or with a comma, fails",
        arguments: [["5", "5"], ["5,5"], ["5, 5"], ["5", ""], ["", "5"]])
    func repeated(lines: [String]) {
        #expect(throws: ParseFailure.self) { try Item(parsing: lines) }
    }

    @Test("STF-06: a field without lines is no Item")
    func noLines() {
        #expect(throws: ParseFailure(offset: 0, reason: .unexpectedEnd)) { try Item(parsing: [] as [String]) }
        #expect(throws: ParseFailure(offset: 0, reason: .unexpectedEnd)) { try Item(parsing: [] as [UInt8]) }
    }

    @Test(
        "STF-07: Booleans may have parameters",
        arguments: [("?1", true), ("?0", false), ("?1;x", true), ("?1;p=2", true), (" ?0;q", false)])
    func booleans(text: String, value: Bool) throws {
        #expect(try Item(parsing: text).value == .boolean(value))
    }

    @Test("STF-07: malformed Booleans fail", arguments: ["?2", "?", "?T", "? 1", "?10", "?1;", ""])
    func noBooleans(text: String) {
        #expect(throws: ParseFailure.self) { try Item(parsing: text) }
    }

    @Test("STF-07: words, numbers and strings are not Booleans", arguments: ["true", "1", "\"?1\""])
    func otherThanBooleans(text: String) throws {
        let value = try Item(parsing: text).value
        #expect(value != .boolean(true))
    }

    @Test(
        "STF-08: Items are written in canonical form",
        arguments: [
            (Item(.integer(0)), "0"), (Item(.integer(-0)), "0"), (Item(.integer(5)), "5"),
            (Item(.integer(999_999_999_999_999)), "999999999999999"), (Item(.boolean(true)), "?1"),
            (Item(.boolean(false), parameters: ["a": .boolean(true), "b": .boolean(false)]), "?0;a;b=?0"),
            (Item(.string("a\"b\\")), #""a\"b\\""#), (Item(.displayString("ü\"%\n")), "%\"%c3%bc%22%25%0a\""),
            (Item(.byteSequence([])), "::"), (Item(.byteSequence([0xFF])), ":/w==:"),
            (Item(.byteSequence([0xFF, 0xFE])), "://4=:"), (Item(.byteSequence([1, 2, 3, 4])), ":AQIDBA==:"),
            (Item(.date(-1)), "@-1"), (Item(.token("*a/b:c")), "*a/b:c"),
        ])
    func canonical(item: Item, text: String) throws {
        #expect(try item.serialized() == text)
        #expect(try Item(parsing: text) == item)
    }

    @Test("STF-08: an Integer is rewritten without sign, zeros and spaces")
    func rewritten() throws {
        #expect(try Item(parsing: " -0; a=007 ").serialized() == "0;a=7")
    }

    @Test(
        "STF-08: values that the format cannot express are refused",
        arguments: [
            (Item(.integer(1_000_000_000_000_000)), .integerOutOfRange), (Item(.integer(.min)), .integerOutOfRange),
            (Item(.date(.max)), .dateOutOfRange), (Item(.string("é")), .invalidString),
            (Item(.string("a\r\nb")), .invalidString), (Item(.string("\u{7F}")), .invalidString),
            (Item(.token("")), .invalidToken), (Item(.token("1a")), .invalidToken),
            (Item(.token("a b")), .invalidToken),
            (Item(.integer(1), parameters: ["": .integer(1)]), .invalidKey),
            (Item(.integer(1), parameters: ["A": .integer(1)]), .invalidKey),
            (Item(.integer(1), parameters: ["a\r\nb": .integer(1)]), .invalidKey),
        ] as [(Item, SerializationFailure.Reason)])
    func inexpressible(item: Item, reason: SerializationFailure.Reason) {
        #expect(throws: SerializationFailure(reason: reason)) { try item.serialized() }
    }

    @Test(
        "Base64 is accepted with exactly the deviations that RFC 9651 section 4.2.7 allows",
        arguments: [
            (":aGVsbG8=:", Array("hello".utf8)), (":aGVsbG8:", Array("hello".utf8)), (":iQ==:", [0x89]),
            (":iZ==:", [0x89]),
            (":iQ:", [0x89]), ("::", []), (":iQ=:", nil), (":aGVs=:", nil), (":aGVs====:", nil), (":a:", nil),
            (":=:", nil), (":a=Vs:", nil), (":a-_s:", nil), (":aG Vs:", nil), (":aGVs", nil),
        ] as [(String, [UInt8]?)])
    func base64(text: String, bytes: [UInt8]?) {
        #expect((try? Item(parsing: text).value) == bytes.map(BareItem.byteSequence))
    }

    @Test("If a parameter occurs twice, the last value is used, at the position of the first value")
    func repeatedParameters() throws {
        let item = try Item(parsing: "1;a=1;b=2;a=3")
        #expect(item.parameters.map(\.key) == ["a", "b"])
        #expect(item.parameters["a"] == .integer(3))
        #expect(try item.serialized() == "1;a=3;b=2")
    }
}
