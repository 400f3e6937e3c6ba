import HTTPSemantics
import TestSupport
import Testing

@Suite struct SafeFileNameTests {
    @Test(
        "SEC-04: names become safe base names",
        arguments: [
            ("../../etc/passwd", "passwd"), ("a\\b", "b"), ("C:x", "x"), ("C:\\dir\\x.txt", "x.txt"),
            ("/etc/passwd", "passwd"),
            ("\\\\server\\share\\f", "f"), ("a/b\\c/d", "d"), ("a\0b.txt", "ab.txt"), ("a\r\nb", "ab"),
            ("\u{1B}[31mx", "[31mx"),
            ("CON", "_CON"), ("con.txt", "_con.txt"), ("Com1.tar.gz", "_Com1.tar.gz"), ("LPT\u{B2}", "_LPT\u{B2}"),
            ("NUL .txt", "_NUL .txt"),
            ("CONIN$", "_CONIN$"), ("CONSOLE", "CONSOLE"), ("COM10", "COM10"), ("aux.", "_aux"), ("COM", "COM"),
            ("photo\u{202E}gpj.exe", "photogpj.exe"), ("\u{2066}a\u{2069}\u{200E}\u{200F}", "a"), ("\u{FEFF}x", "x"),
            ("x. . .", "x"), ("  x  ", "x"), ("x\u{A0}", "x"), (".htaccess", "_htaccess"), ("...x", "_x"),
            ("..x", "_x"),
            ("f.txt:stream", "f.txt_stream"), ("C:C:x", "C_x"), ("a<b>|\"?*", "a_b_____"), ("é ü.txt", "é ü.txt"),
            ("a%2fb", "a%2fb"),
            ("👩‍👩‍👧.png", "👩‍👩‍👧.png"), ("a:b", "b"), ("ab:c", "ab_c"), ("con\u{3000}.txt", "_con\u{3000}.txt"),
        ])
    func sanitized(name: String, expected: String) {
        #expect(SafeFileName(sanitizing: name)?.value == expected)
    }

    @Test(
        "SEC-04: names without usable characters are refused",
        arguments: [
            "", ".", "..", "...", " ", " . ", "/", "a/", "../", "a\\", "C:", "C:\\", "\0", "\u{202E}", "..\\..",
            "\u{200E}..",
        ])
    func refused(name: String) {
        #expect(SafeFileName(sanitizing: name) == nil)
    }

    @Test("SEC-04: filename* is decoded before it is checked")
    func extendedValue() throws {
        func name(_ value: String) throws -> String? {
            let disposition = try #require(ContentDisposition(parsing: value))
            return disposition.filename.flatMap { SafeFileName(sanitizing: $0)?.value }
        }
        #expect(try name("attachment; filename*=UTF-8''..%2f") == nil)
        #expect(try name("attachment; filename*=UTF-8''..%2f..%2Fetc%2fpasswd") == "passwd")
        #expect(try name("attachment; filename*=UTF-8''a%00b%0d%0A") == "ab")
        #expect(try name("attachment; filename=\"a\\\\b\"") == "b")
        #expect(try name("attachment; filename=\"../../etc/passwd\"") == "passwd")
    }

    @Test("SEC-04: 5000 characters are shortened to 255 bytes, and the extension is kept")
    func length() {
        let ascii = SafeFileName(sanitizing: String(repeating: "a", count: 5_000) + ".tar")?.value
        #expect(ascii == String(repeating: "a", count: 251) + ".tar")
        let wide = SafeFileName(sanitizing: String(repeating: "é", count: 5_000) + ".txt")?.value
        #expect(wide == String(repeating: "é", count: 125) + ".txt")
        let plain = SafeFileName(sanitizing: String(repeating: "a", count: 256))?.value
        #expect(plain == String(repeating: "a", count: 255))
        let longExtension = SafeFileName(sanitizing: "a." + String(repeating: "b", count: 5_000))?.value
        #expect(longExtension == "a." + String(repeating: "b", count: 253))
        let gap = SafeFileName(sanitizing: "con" + String(repeating: "\u{3000}", count: 200) + ".txt")?.value
        #expect(gap == "_con.txt")
        let cut = SafeFileName(sanitizing: "CON" + String(repeating: " ", count: 300) + "x.txt")?.value
        #expect(cut == "_CON.txt")
        let device = SafeFileName(sanitizing: "aux." + String(repeating: "b", count: 251))?.value
        #expect(device == "_aux." + String(repeating: "b", count: 250))
        #expect(SafeFileName(sanitizing: String(repeating: "a", count: 255))?.value.utf8.count == 255)
    }

    @Test("SEC-04: the result is safe, and sanitizing it again does not change it", arguments: SeededGenerator.seeds)
    func idempotent(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let parts = [
            "CON", "aux", "COM1", ".", "..", " ", "/", "\\", ":", "C", "x", "é", "\u{202E}", "\0", "\u{3000}", "_",
            ".txt", "\u{B9}", "com",
            "*", "\u{301}", "\r\n", String(repeating: "a", count: 120), String(repeating: " ", count: 130),
            String(repeating: "😀", count: 60),
        ]
        for index in 0..<SeededGenerator.count(6_000) {
            let name =
                index % 4 == 0
                ? generator.unicode(upTo: 300)
                : (0..<Int.random(in: 0...8, using: &generator)).map { _ in parts.randomElement(using: &generator) ?? ""
                }.joined()
            guard let safe = SafeFileName(sanitizing: name) else { continue }
            let again = SafeFileName(sanitizing: safe.value)?.value
            #expect(again.map { Array($0.utf8) } == Array(safe.value.utf8), "\(name.debugDescription)")
            #expect((1...255).contains(safe.value.utf8.count), "\(name.debugDescription)")
            #expect(!safe.value.utf8.contains { $0 < 0x20 || $0 == 0x7F || $0 == 0x2F || $0 == 0x5C || $0 == 0x3A })
            #expect(safe.value.utf8.first != 0x2E && safe.value.utf8.last != 0x2E && safe.value.utf8.last != 0x20)
        }
    }
}
