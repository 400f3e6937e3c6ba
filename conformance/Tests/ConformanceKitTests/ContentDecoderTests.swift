import ConformanceKit
import HTTPSemantics
import Testing

@Suite("The decoder of content")
struct ContentDecoderTests {
    /// Decodes bytes that arrive in pieces, and returns the content; `nil` if it is refused. Bytes after its end stay.
    private func decode(
        _ bytes: [UInt8], inPiecesOf size: Int = .max, with decoder: inout ContentDecoder
    ) -> [UInt8]? {
        var content: [UInt8] = []
        var remaining = bytes[...]
        while !remaining.isEmpty, !decoder.isComplete {
            var piece = remaining.prefix(size)
            remaining = remaining.dropFirst(size)
            while !piece.isEmpty, !decoder.isComplete {
                guard let part = try? decoder.next(from: &piece, atMost: 4) else { return nil }
                #expect(part.count <= 4)
                content += part
            }
        }
        return content
    }

    @Test("Content is decoded from pieces of any size, and what follows it is left")
    func pieces() throws {
        let coded = Array("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: v\r\n\r\n".utf8)
        for size in 1...coded.count {
            var decoder = ContentDecoder(.chunked, accepting: .extensions)
            #expect(decode(Array(coded.dropLast(1)), inPiecesOf: size, with: &decoder) == Array("hello world".utf8))
            #expect(!decoder.isComplete && decoder.count == 11)
            var end = Array("\nGET".utf8)[...]
            #expect(try decoder.next(from: &end).isEmpty && decoder.isComplete && end.elementsEqual("GET".utf8))
            #expect(decoder.trailers == ["T: v"])
        }
        var sized = ContentDecoder(.length(3))
        var bytes = Array("abcd".utf8)[...]
        #expect(try sized.next(from: &bytes).elementsEqual("abc".utf8) && sized.isComplete && bytes.count == 1)
        #expect(ContentDecoder(.length(0)).isComplete && ContentDecoder(.none).isComplete)
    }

    @Test(
        "Deviations in chunks are refused unless the recipient accepts them",
        arguments: [
            ("5;x=y\r\nhello\r\n0\r\n\r\n", ContentDecoder.Tolerance.extensions),
            ("5 ;x\r\nhello\r\n0\r\n\r\n", .extensions), ("5 \r\nhello\r\n0\r\n\r\n", .blanks),
            ("5\nhello\n0\n\n", .lineFeeds), ("5\r\nhello\r\n0\r\nT: v\n\r\n", .lineFeeds),
        ])
    func deviations(text: String, tolerance: ContentDecoder.Tolerance) {
        var strict = ContentDecoder(.chunked)
        #expect(decode(Array(text.utf8), with: &strict) == nil)
        var lenient = ContentDecoder(.chunked, accepting: tolerance)
        #expect(decode(Array(text.utf8), with: &lenient) == Array("hello".utf8))
        #expect(lenient.isComplete)
    }

    @Test("A size above the largest integer is refused, or counts as that integer")
    func hugeSize() {
        var strict = ContentDecoder(.chunked)
        #expect(decode(Array("FFFFFFFFFFFFFFFFF\r\nhello".utf8), with: &strict) == nil)
        var lenient = ContentDecoder(.chunked, accepting: .hugeSizes)
        #expect(decode(Array("FFFFFFFFFFFFFFFFF\r\nhello".utf8), with: &lenient) == Array("hello".utf8))
        #expect(!lenient.isComplete)
    }

    @Test(
        "Malformed chunks are refused by every recipient, before the end of a line has arrived if the line is not empty",
        arguments: [
            "zz\r\n", "\r\n", "+5\r\nhello\r\n", "-5\r\n", " 5\r\nhello\r\n", "0x5\r\nhello\r\n", "5 x\r\nhello\r\n",
            "5\r\nhello0", "5\r\nhello\r0", "5;" + String(repeating: "a", count: 10_000),
        ])
    func malformed(text: String) {
        var decoder = ContentDecoder(.chunked, accepting: [.extensions, .lineFeeds, .blanks, .hugeSizes])
        #expect(decode(Array(text.utf8), with: &decoder) == nil)
        #expect(decode(Array("0\r\n\r\n".utf8), with: &decoder) == nil, "it does not become valid later")
        #expect(!decoder.isComplete)
    }
}
