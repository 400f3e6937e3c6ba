import HTTPSemantics
import Testing

@testable import TransferServer

@Suite("The framing of what is received") struct ReceivedFramingTests {
    private static let start = "PUT /files/a HTTP/1.1\r\nHost: localhost\r\n"
    private static let chunks = start + "Transfer-Encoding: chunked\r\n\r\n"

    /// Gives `text` in pieces that end at `cuts`, and tells what the reader behind sees and what is wrong.
    private func receive(_ text: String, cuts: [Int] = []) -> (text: String, fault: String?, request: Int?, Int) {
        var framing = ReceivedFraming()
        let bytes = Array(text.utf8)
        var seen: [UInt8] = []
        var start = 0
        for end in cuts.sorted() + [bytes.count] {
            var piece = Array(bytes[start..<end])
            let kept = piece.withUnsafeMutableBytes { framing.receive($0) }
            seen += piece.prefix(kept)
            start = end
        }
        return (
            String(decoding: seen, as: UTF8.self), framing.fault?.refusal.code, framing.fault?.request, framing.requests
        )
    }

    private static let wellFormedTexts: [(String, Int)] = [
        (start + "\r\n", 1),
        (start + "Content-Length: 5\r\n\r\nhello" + start + "\r\n", 2),
        (start + "content-length:\t 5\r\n\r\nhello\r\n\r\n" + start + "Content-Length: 0\r\n\r\n" + start + "\r\n", 3),
        (start + "Content-Length: 18446744073709551615\r\n\r\nhello", 1),
        (start + "X: \(String(repeating: "y", count: 700))\r\nContent-Length: 1\r\n\r\n\n" + start + "\r\n", 2),
        (chunks + "5\r\nhello\r\n0\r\n\r\n" + start + "\r\n", 2),
        (chunks + "005\r\nh\nl\r\n\r\nA\r\n0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\n" + chunks + "0\r\n\r\n", 2),
        (start + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + start + "\r\n", 2),
        (start + "Expect: 100-continue\r\nX: a  \r\nY:  \r\n\r\n" + start + "\r\n", 2),
    ]

    @Test(
        "What is well-formed is left as it is, and its requests are counted, however it arrives",
        arguments: wellFormedTexts)
    func wellFormed(text: String, requests: Int) {
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<200 {
            let cuts = (0..<Int.random(in: 0...5, using: &generator)).map { _ in
                Int.random(in: 0...text.utf8.count, using: &generator)
            }
            let seen = receive(text, cuts: cuts)
            #expect(seen.text == text && seen.fault == nil && seen.3 == requests, "\(cuts)")
        }
    }

    private static let meaningless: [(String, String)] = [
        (start + "Content-Length: 5 \r\n\r\nhello", start + "Content-Length: 5\r\n\r\nhello"),
        (start + "Content-Length:5\t \t  \r\n\r\nhello", start + "Content-Length:5\r\n\r\nhello"),
        (start + "Transfer-Encoding: chunked \t\r\n\r\n0\r\n\r\n", chunks + "0\r\n\r\n"),
        (start + "Expect: 100-continue \r\n\r\n", start + "Expect: 100-continue\r\n\r\n"),
        (
            chunks + "3e8;a=\"b;c\" ; d\r\n\(String(repeating: ";", count: 1000))\r\n0;x\r\nA: b\r\n\r\n",
            chunks + "3e8\r\n\(String(repeating: ";", count: 1000))\r\n0\r\nA: b\r\n\r\n"
        ),
        (chunks + "5 \t;a\r\nhello\r\n0\r\n\r\n", chunks + "5\r\nhello\r\n0\r\n\r\n"),
    ]

    @Test("H11-11: what means nothing is left out, however it arrives", arguments: meaningless)
    func leftOut(text: String, rest: String) {
        var generator = SeededGenerator(seed: 14)
        for number in 0..<200 {
            let cuts =
                number == 0
                ? Array(0...text.utf8.count)
                : (0..<4).map { _ in Int.random(in: 0...text.utf8.count, using: &generator) }
            let seen = receive(text + Self.start + "\r\n", cuts: cuts)
            #expect(seen.text == rest + Self.start + "\r\n" && seen.fault == nil && seen.3 == 2, "\(cuts)")
        }
    }

    @Test("an extension has an end, and white space behind a size has something that follows it")
    func noSize() {
        let long = receive(Self.chunks + "5;" + String(repeating: "a", count: 20_000) + "\r\nhello\r\n0\r\n\r\n")
        #expect(long.text.hasPrefix(Self.chunks + "5x"))
        for content in ["5 \r\nhello", "5 5\r\nhello", "5\t\nhello"] {
            #expect(receive(Self.chunks + content).text.hasPrefix(Self.chunks + "5x"))
        }
    }

    @Test(
        "A malformed Content-Length is told, and hidden",
        arguments: ["", " ", "+5", "-1", "0x5", "5 5", "5,5", "5;", "٥", "1e3", "5x"])
    func malformedLength(value: String) {
        let line = "Content-Length: \(value)\r\n"
        let text = Self.start + line + "\r\nhello"
        let seen = receive(text)
        #expect(seen.fault == "invalid-content-length" && seen.request == 1)
        #expect(seen.text.contains("\r\nXontent-Length: ") && !seen.text.contains("\r\nContent-Length"))
        // Where the line's beginning is gone a number takes its place.
        for cut in 1...text.utf8.count {
            let seen = receive(text, cuts: [Self.start.utf8.count + 4, cut])
            #expect(seen.fault == "invalid-content-length", "\(cut)")
            let lines = seen.text.split(whereSeparator: \.isNewline)
            #expect(
                lines.contains { $0.wholeMatch(of: /[CX]ontent-Length:\s*[0-9]+/) != nil } || seen.text.contains("Xont")
            )
        }
    }

    @Test(
        "A number that is too large is told as that",
        arguments: ["18446744073709551616", String(repeating: "5", count: 300)])
    func overflow(number: String) {
        let seen = receive(Self.start + "Content-Length: \(number)\r\n\r\n")
        #expect(seen.fault == "content-length-overflow" && seen.text.contains("Xontent-Length"))
        let cut = receive(Self.start + "Content-Length: \(number)\r\n\r\n", cuts: [Self.start.utf8.count + 4])
        #expect(cut.fault == "content-length-overflow" && cut.text.contains(/Content-Length: [0-9]{19,20}\r\n/))
    }

    @Test(
        "Other codings are told, and hidden",
        arguments: [
            ("gzip", "chunked-not-final"), ("gzip, chunked", "unknown-transfer-coding"),
            ("chunk ed", "invalid-transfer-encoding"), ("chunked, chunked", "chunked-repeated"),
            ("", "invalid-transfer-encoding"),
        ])
    func codings(value: String, code: String) {
        let seen = receive(Self.start + "Transfer-Encoding: \(value)\r\n\r\n")
        #expect(seen.fault == code && seen.text.contains("\r\nXransfer-Encoding"))
    }

    @Test(
        "Lines that others could read in another way are told, however they arrive",
        arguments: [
            " folded: a", "\tfolded", "nothing", ": a", "X: a\rContent-Length: 5", "X: a\u{0}b", "X\u{0}: a", "\r",
            "Expect: 100- continue",
        ])
    func malformedHead(line: String) {
        let text = Self.start + line + "\r\n\r\n"
        for cut in 0...text.utf8.count {
            let seen = receive(text, cuts: [cut])
            #expect(seen.fault == "malformed-head" && seen.request == 1, "\(cut)")
        }
        for text in [
            "PUT / HTTP/1.1\nHost: a\r\n\r\n", "PUT / HTTP/1.1\r\nHost: a\n\r\n", "PUT / HTTP/1.1\r\nHost: a\r\n\n",
        ] {
            #expect(receive(text).fault == "malformed-head")
        }
    }

    @Test(
        "A bare LF in chunks is told, wherever it stands",
        arguments: [
            "5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n0\n\r\n", "5\r\nhello\r\n0\r\n\n",
            "5\r\nhello\r\n0\r\nX: y\n\r\n",
        ])
    func bareLineFeed(content: String) {
        var generator = SeededGenerator(seed: 12)
        let text = Self.start + "\r\n" + Self.chunks + content
        for _ in 0..<50 {
            let seen = receive(text, cuts: [Int.random(in: 0...text.utf8.count, using: &generator)])
            #expect(seen.fault == "bare-line-feed" && seen.request == 2 && seen.text == text)
        }
    }

    @Test(
        "Nothing is said of what follows a request that is ended anyway",
        arguments: [
            "\u{16}\u{3}\u{1}Content-Length: x\r\n",
            start + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\nhello",
            start + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + chunks + "5\nhello",
            chunks + "x\r\n5\nhello", chunks + "5\r\nhelloX\n5\n", chunks + "fffffffffffffffff\r\n5\n",
        ])
    func lost(text: String) {
        let seen = receive(text)
        #expect(seen.fault == nil && seen.text == text)
    }

    @Test("No bytes at all can do it harm")
    func anything() {
        var generator = SeededGenerator(seed: 13)
        let pieces = [
            "\r\n", "\n", "\r", " ", "PUT / HTTP/1.1\r\n", "Content-Length: ", "Transfer-Encoding: chunked\r\n", "5",
            "0",
            "hello", "ffffffffffffffff", ":", ";", "\u{0}", "18446744073709551615", "Host: a\r\n",
        ]
        for _ in 0..<5000 {
            let text = (0..<Int.random(in: 1...30, using: &generator))
                .map { _ in pieces[Int.random(in: 0..<pieces.count, using: &generator)] }.joined()
            let cuts = (0..<3).map { _ in Int.random(in: 0...text.utf8.count, using: &generator) }
            let seen = receive(text, cuts: cuts)
            #expect(seen.text.utf8.count <= text.utf8.count)
        }
    }
}
