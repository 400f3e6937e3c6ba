import HTTPSemantics
import Testing

@testable import TransferServer

@Suite("The framing of what is received") struct ReceivedFramingTests {
    private static let start = "PUT /files/a HTTP/1.1\r\nHost: localhost\r\n"
    private static let chunks = start + "Transfer-Encoding: chunked\r\n\r\n"

    /// Gives `text` in pieces that end at `cuts`, and tells what the reader behind sees and what is wrong.
    private func receive(_ text: String, cuts: [Int] = []) -> (text: String, fault: String?, request: Int?, Int) {
        var framing = ReceivedFraming()
        var bytes = Array(text.utf8)
        var start = 0
        for end in cuts.sorted() + [bytes.count] {
            bytes[start..<end].withUnsafeMutableBytes { framing.receive($0) }
            start = end
        }
        return (
            String(decoding: bytes, as: UTF8.self), framing.fault?.refusal.code, framing.fault?.request,
            framing.requests
        )
    }

    private static let wellFormedTexts: [(String, Int)] = [
        (start + "\r\n", 1),
        (start + "Content-Length: 5\r\n\r\nhello" + start + "\r\n", 2),
        (start + "content-length:\t 5\r\n\r\nhello\r\n\r\n" + start + "Content-Length: 0\r\n\r\n" + start + "\r\n", 3),
        (start + "Content-Length: 18446744073709551615\r\n\r\nhello", 1),
        (start + "X: \(String(repeating: "y", count: 700))\r\nContent-Length: 1\r\n\r\n\n" + start + "\r\n", 2),
        (chunks + "5\r\nhello\r\n0\r\n\r\n" + start + "\r\n", 2),
        (chunks + "005;a=\"b\" ;c\r\nh\nl\r\n\r\nA\r\n0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\n" + chunks + "0\r\n\r\n", 2),
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

    @Test("White space behind a number goes before it", arguments: [" ", "\t", " \t  ", "        "])
    func trailingSpace(space: String) {
        let head = Self.start + "Content-Length: 12\(space)\r\n\r\n"
        let seen = receive(head + "hello hello " + Self.start + "\r\n")
        let blanks = String(repeating: " ", count: space.utf8.count)
        #expect(seen.text.hasPrefix(Self.start + "Content-Length: \(blanks)12\r\n\r\nhello"))
        #expect(seen.fault == nil && seen.3 == 2)
    }

    @Test(
        "A malformed Content-Length is told, and hidden",
        arguments: [
            "", " ", "+5", "-1", "0x5", "5 5", "5,5", "5;", "٥", "1e3", "\u{0}5", String(repeating: "5", count: 300),
        ])
    func malformedLength(value: String) {
        let line = "Content-Length: \(value)\r\n"
        let seen = receive(Self.start + line + "\r\nhello")
        #expect(seen.fault == "invalid-content-length" && seen.request == 1)
        #expect(seen.text == Self.start + "X" + line.dropFirst() + "\r\nhello")
        // Of a line that arrives in pieces nothing can be hidden, but it is told.
        let cut = receive(Self.start + line + "\r\nhello", cuts: [Self.start.utf8.count + 4])
        #expect(cut.fault == "invalid-content-length" && cut.text == Self.start + line + "\r\nhello")
    }

    @Test("A number that is too large is told as that")
    func overflow() {
        let seen = receive(Self.start + "Content-Length: 18446744073709551616\r\n\r\n")
        #expect(seen.fault == "content-length-overflow" && seen.text.contains("Xontent-Length"))
    }

    @Test(
        "A bare LF in chunks is told, wherever it stands",
        arguments: [
            "5\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\n0\n\r\n", "5\r\nhello\r\n0\r\n\n",
            "5\r\nhello\r\n0\r\nX: y\n\r\n", "5;a=b\nhello\r\n0\r\n\r\n",
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
            start + "Host: a\n\r\n" + chunks + "5\nhello",
            start + " folded\r\n\r\n" + chunks + "5\nhello",
            start + "nothing\r\n\r\n" + chunks + "5\nhello",
            start + "Transfer-Encoding: gzip, chunked\r\n\r\n5\nhello",
            start + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n5\nhello",
            start + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + chunks + "5\nhello",
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
            #expect(seen.text.utf8.count == text.utf8.count)
        }
    }
}
