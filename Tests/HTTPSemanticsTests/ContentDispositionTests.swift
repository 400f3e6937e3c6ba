import HTTPSemantics
import TestSupport
import Testing

@Suite struct ContentDispositionTests {
    @Test(
        "the type and the file name are read",
        arguments: [
            ("attachment", "attachment", nil), ("INLINE; filename=a.txt", "inline", "a.txt"),
            ("attachment; filename=\"a b.txt\"", "attachment", "a b.txt"),
            ("attachment; FileName=\"a\\\"b\\\\c\"", "attachment", "a\"b\\c"),
            ("attachment; filename*=UTF-8''%e2%82%ac%20rates", "attachment", "€ rates"),
            ("attachment; filename=\"EURO rates\"; filename*=utf-8''%e2%82%ac%20rates", "attachment", "€ rates"),
            ("attachment; filename*=UTF-8'en'%e2%82%ac; filename=x", "attachment", "€"),
            ("attachment; filename*=iso-8859-1'en'%A3%20rates", "attachment", "£ rates"),
            ("attachment; filename=\"é\"", "attachment", "é"), ("attachment; filename = \"a\" ;", "attachment", "a"),
            ("form-data; name=x; filename=\"\"", "form-data", ""),
            ("attachment; filename=a%20b", "attachment", "a%20b"),
        ] as [(String, String, String?)])
    func parsed(value: String, type: String, filename: String?) throws {
        let disposition = try #require(ContentDisposition(parsing: value))
        #expect(disposition.type == type && disposition.filename == filename)
    }

    @Test(
        "A malformed filename* is ignored",
        arguments: [
            "UTF-8''%FF", "UTF-8''%C0%AF", "UTF-8''%e2%82", "UTF-8''%zz", "UTF-8''%2", "koi8-r''x", "UTF-8'x", "x",
            "''x", "UTF-8''a'b",
            "\"UTF-8''a b\"", "UTF-8'e_n'x",
        ])
    func malformedExtendedValue(value: String) {
        #expect(ContentDisposition(parsing: "attachment; filename=plain; filename*=\(value)")?.filename == "plain")
        #expect(ContentDisposition(parsing: "attachment; filename*=\(value)")?.filename == nil)
    }

    @Test(arguments: [
        "", ";", "\"attachment\"", "attachment; filename", "attachment; filename=", "attachment; filename=a b",
        "attachment; filename=\"a",
        "attachment; filename=a; filename=b", "attachment; filename=a; FILENAME=b", "attachment, inline",
        "attachment filename=a",
        "filename=\"a\"", "attachment; filename=\"a\0\"", "attachment; filename=\"a\r\nb\"",
    ])
    func refused(value: String) {
        #expect(ContentDisposition(parsing: value) == nil)
    }

    @Test(arguments: [
        ("a.txt", "attachment; filename=\"a.txt\""), ("a b", "attachment; filename=\"a b\""),
        ("€ rates.txt", "attachment; filename=\"_ rates.txt\"; filename*=UTF-8''%E2%82%AC%20rates.txt"),
        ("a\"b\\c", "attachment; filename=\"a_b_c\"; filename*=UTF-8''a%22b%5Cc"),
        ("50%25", "attachment; filename=\"50_25\"; filename*=UTF-8''50%2525"),
        ("it's*", "attachment; filename=\"it's*\""),
    ])
    func serialized(name: String, value: String) {
        #expect(ContentDisposition(type: "Attachment", filename: name).serialized == value)
        #expect(ContentDisposition(parsing: value)?.filename == name)
    }

    @Test("SEC-18: no file name and no type can split a response", arguments: SeededGenerator.seeds)
    func serializedIsHarmless(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<SeededGenerator.count(2_000) {
            let name = generator.unicode(upTo: 12)
            let value = ContentDisposition(type: "inline", filename: name).serialized
            #expect(Fields.isValidValue(value) && value.utf8.allSatisfy { $0 < 0x80 }, "\(name.debugDescription)")
            let parsed = ContentDisposition(parsing: value)?.filename
            #expect(parsed.map { Array($0.utf8) } == Array(name.utf8), "\(name.debugDescription)")
        }
        #expect(ContentDisposition(type: "a\r\nX: y", filename: nil).serialized == "attachment")
    }

    @Test(arguments: SeededGenerator.seeds)
    func arbitraryValuesNeverCrash(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for index in 0..<SeededGenerator.count(4_000) {
            let value =
                index % 3 == 0
                ? generator.unicode(upTo: 30)
                : generator.mutate("attachment; filename=\"a\\\"b\"; filename*=UTF-8''%e2%82%ac")
            guard let parsed = ContentDisposition(parsing: value) else { continue }
            let again = ContentDisposition(parsing: parsed.serialized)
            #expect(again == parsed, "\(value)")
        }
    }
}
