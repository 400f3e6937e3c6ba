import Testing

@testable import onward

@Suite("Text for terminals")
struct DisplayTextTests {
    @Test("Control characters of terminals are replaced")
    func printable() {
        #expect(DisplayText.printable("a\u{1B}[2Jb\u{7}\r\n\tc\u{9B}d\u{202E}e\u{85}") == "a?[2Jb??  c?d?e?")
        #expect(DisplayText.printable("Größe 日本 👩‍👧 e\u{301}") == "Größe 日本 👩‍👧 e\u{301}")
    }

    @Test(
        "The width of a text is its number of terminal columns",
        arguments: [
            ("", 0), ("abc", 3), ("äö", 2), ("e\u{301}", 1), ("日本", 4), ("ｆ", 2), ("👍🏽", 2), ("👩‍👩‍👧‍👦", 2), ("❤️", 2),
            ("…", 1),
        ])
    func width(text: String, columns: Int) { #expect(DisplayText.width(text) == columns) }

    @Test(
        "Long names are shortened in the middle by complete characters",
        arguments: [
            ("short", 5, "short"), ("abcdefghij", 7, "abc…hij"), ("abcdefghij", 6, "abc…ij"), ("abcdefghij", 2, "a…"),
            ("abcdefghij", 1, "…"), ("abcdefghij", 0, ""), ("日本語日本語", 7, "日本…語"), ("日本語日本語", 6, "日…語"),
        ])
    func truncated(text: String, columns: Int, result: String) {
        #expect(DisplayText.truncated(text, to: columns) == result)
        #expect(DisplayText.width(DisplayText.truncated(text, to: columns)) <= columns)
    }
}

@Suite("Amounts")
struct AmountTests {
    @Test(
        "Amounts of bytes have three significant digits",
        arguments: [
            (0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (1005, "1.00 kB"), (1050, "1.05 kB"), (9_994, "9.99 kB"),
            (9_996, "10.0 kB"), (99_949, "99.9 kB"), (99_951, "100 kB"), (999_499, "999 kB"), (999_500, "1.00 MB"),
            (300_000_000, "300 MB"), (1_260_000_000, "1.26 GB"), (Int64.max, "9.22 EB"),
        ] as [(Int64, String)])
    func bytes(count: Int64, text: String) { #expect(Amount.bytes(count) == text) }

    @Test(
        "Durations have two units",
        arguments: [
            (0, "0 s"), (0.2, "1 s"), (59, "59 s"), (59.5, "1 min 00 s"), (155, "2 min 35 s"), (3600, "1 h 00 min"),
            (11_520, "3 h 12 min"), (187_200, "2 d 04 h"), (1e12, "over 100 d"), (.infinity, "over 100 d"),
            (.nan, "over 100 d"),
        ] as [(Double, String)])
    func durations(seconds: Double, text: String) { #expect(Amount.duration(seconds) == text) }
}

@Suite("JSON lines")
struct JSONLineTests {
    @Test("Members keep their order, and the object is written on one line, for all values")
    func text() {
        var line = JSONLine([("event", .text("a\"b\\c\n\r\t\u{1}\u{7F}\u{85}é👍"))])
        line.append("total", nil as Int64?)
        line.append("sent", 7)
        line.append("location", nil as String?)
        line.append("retryIn", .seconds(1.23456))
        line.append("active", .truth(true))
        #expect(
            line.text
                == #"{"event":"a\"b\\c\n\r\t\u0001\u007f\u0085é👍","total":null,"sent":7,"location":null,"retryIn":1.235,"active":true}"#
        )
    }
}
