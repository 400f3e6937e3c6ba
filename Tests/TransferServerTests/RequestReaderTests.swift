import HTTPSemantics
import Testing

@testable import TransferServer

/// The complete output of a reader for pieces of input.
struct ReadInput {
    /// The text that libmicrohttpd receives.
    var text = ""
    var requests: [ReceivedRequest] = []
    /// The content of each request, which ends with "…" if it is incomplete.
    var contents: [String] = []
    var contentRefusal: FramingRefusal?
    /// The number of reads of content.
    var reads = 0

    private final class Pieces: ByteSource {
        let isRecordwise: Bool
        var pieces: [ArraySlice<UInt8>]

        init(_ bytes: [UInt8], cuts: [Int], isRecordwise: Bool) {
            self.isRecordwise = isRecordwise
            var start = 0
            pieces = (cuts.sorted() + [bytes.count]).map { end in
                defer { start = max(start, end) }
                return bytes[min(start, end)..<end]
            }
        }

        func receive(into buffer: UnsafeMutableRawBufferPointer) -> RequestReader.Arrival {
            guard let first = pieces.first else { return .end(0) }
            if first.isEmpty {
                pieces.removeFirst()
                return .none
            }
            let part = first.prefix(buffer.count)
            buffer.copyBytes(from: part)
            pieces[0] = first.dropFirst(part.count)
            return .bytes(part.count)
        }
    }

    init(_ text: String, cuts: [Int] = [], isRecordwise: Bool = false, room: Int = 64 << 10, waits: Int? = nil) {
        self.init(Array(text.utf8), cuts: cuts, isRecordwise: isRecordwise, rooms: [room], waits: waits)
    }

    /// - Parameters:
    ///   - rooms: the sizes of the buffers for the content of each request; the last one is also that of all later requests.
    ///   - waits: how often the server waits for the remaining bytes of short content after each head; `nil` if it
    ///     does not want the content yet.
    init(
        _ bytes: [UInt8], cuts: [Int] = [], isRecordwise: Bool = false, rooms: [Int] = [64 << 10], waits: Int? = nil
    ) {
        var reader = RequestReader()
        let source = Pieces(bytes, cuts: cuts, isRecordwise: isRecordwise)
        var buffer = [UInt8](repeating: 0, count: 1024)
        var seen: [UInt8] = []
        var content: [UInt8] = []
        while true {
            let arrival = buffer.withUnsafeMutableBytes { reader.read(into: $0, from: source) }
            switch arrival {
            case .bytes(let count):
                let piece = buffer[..<count]
                if let request = reader.nextRequest() {
                    requests.append(request)
                    contents.append("")
                    if let waits {
                        var left = waits
                        let isComplete = reader.receiveContent(atMost: 9, from: source) {
                            defer { left -= 1 }
                            return left > 0
                        }
                        #expect(!isComplete || reader.hasInput || !piece.contains("chunked".utf8))
                    }
                }
                if piece.contains("?\r\n".utf8) {
                    let room = rooms[min(max(0, requests.count - 1), rooms.count - 1)]
                    readContent(&reader, from: source, room: room, &content)
                }
                if piece.suffix(5).elementsEqual("0\r\n\r\n".utf8) {
                    contents[contents.count - 1] = String(decoding: content, as: UTF8.self)
                    content = []
                }
                seen += piece
            // The socket is not read before poll reports more input.
            case .none: continue
            case .end:
                text = String(decoding: seen, as: UTF8.self)
                if !content.isEmpty || contentRefusal != nil {
                    contents[contents.count - 1] = String(decoding: content, as: UTF8.self) + "…"
                }
                return
            }
        }
    }

    private mutating func readContent(
        _ reader: inout RequestReader, from source: Pieces, room: Int, _ content: inout [UInt8]
    ) {
        var buffer = [UInt8](repeating: 0, count: room)
        switch buffer.withUnsafeMutableBytes({ reader.readContent(into: $0, from: source) }) {
        case .bytes(let count):
            content += buffer[..<count]
            reads += 1
        case .none: break
        case .malformed(let refusal): contentRefusal = refusal
        }
    }

    var refusal: String? {
        guard case .refused(let refusal)? = requests.last?.evaluation else { return contentRefusal?.code }
        return refusal.code
    }
}

@Suite("Reading requests") struct RequestReaderTests {
    private static let start = "PUT /files/a HTTP/1.1\r\nHost: localhost\r\n"
    private static let chunks = start + "Transfer-Encoding: chunked\r\n\r\n"

    private static let wellFormedTexts: [(String, [String])] = [
        (start + "\r\n", [""]),
        ("\r\n\r\n" + start + "Content-Length: 5\r\n\r\nhello" + start + "\r\n", ["hello", ""]),
        (start + "content-length:\t 5 \t\r\n\r\nhello\r\n" + start + "Content-Length: 0\r\n\r\n", ["hello", ""]),
        (start + "Content-Length: 5, 5\r\n\r\nhello" + start + "\r\n", ["hello", ""]),
        (chunks + "5\r\nhello\r\n0\r\n\r\n" + start + "\r\n", ["hello", ""]),
        (
            chunks + "1\r\nh\r\n1\r\ne\r\n3;a=\"b;c\" ; d\r\nllo\r\n000\r\nX: y\r\nZ:\r\n\r\n" + chunks + "0;x\r\n\r\n",
            ["hello", ""]
        ),
        (chunks + "3 \t;a\r\nGET\r\n0\r\n\r\n", ["GET"]),
        (chunks + "10\r\n0\r\n\r\nGET / HTTP/\r\n0\r\n\r\n", ["0\r\n\r\nGET / HTTP/"]),
    ]

    @Test("content that arrived together with an earlier request is read completely, even into a smaller buffer")
    func smallerBuffer() {
        let content = String(repeating: "x", count: 200_000)
        let text =
            Self.chunks + "1\r\na\r\n0\r\n\r\n" + Self.start + "Content-Length: 200000\r\n\r\n" + content + Self.start
            + "\r\n"
        let input = ReadInput(Array(text.utf8), rooms: [512 << 10, 64 << 10])
        #expect(input.contents == ["a", content, ""])
        #expect(input.refusal == nil)
    }

    @Test(
        "H11-11 H11-16: the division of well-formed requests into pieces does not affect the result",
        arguments: wellFormedTexts,
        [true, false])
    func wellFormed(item: (text: String, contents: [String]), isRecordwise: Bool) {
        for cuts in [Array(0..<item.text.utf8.count)] + (0...item.text.utf8.count).map({ [$0] }) {
            let input = ReadInput(item.text, cuts: cuts, isRecordwise: isRecordwise)
            #expect(input.contents == item.contents && input.refusal == nil, "\(cuts)")
            #expect(input.requests.allSatisfy { $0.head.target == "/files/a" })
        }
    }

    @Test(
        "content that the server receives in advance equals the content that was sent", arguments: wellFormedTexts,
        [true, false])
    func inAdvance(item: (text: String, contents: [String]), isRecordwise: Bool) {
        for waits in [0, 1, 100] {
            for cuts in [Array(0..<item.text.utf8.count)] + (0...item.text.utf8.count).map({ [$0] }) {
                let input = ReadInput(item.text, cuts: cuts, isRecordwise: isRecordwise, waits: waits)
                #expect(input.contents == item.contents && input.refusal == nil, "\(cuts), \(waits)")
            }
        }
    }

    @Test(
        "the server receives short content in advance only if it is complete in time",
        arguments: [
            (["hello"], 5, true), ([""], 5, false), (["he", "llo"], 5, true), (["he", "l", "lo"], 5, true),
            (["", "hello"], 4, false), (["h", "ello"], 4, true), (["h", "ell"], 5, false),
            (["", "hello"], 5, false),
        ] as [([String], Int, Bool)])
    func arrival(_ parts: [String], _ limit: Int, _ isComplete: Bool) {
        final class Source: ByteSource {
            var arrived: [UInt8] = []
            var isRecordwise: Bool { false }

            func receive(into buffer: UnsafeMutableRawBufferPointer) -> RequestReader.Arrival {
                if arrived.isEmpty { return .none }
                let part = arrived.prefix(buffer.count)
                buffer.copyBytes(from: part)
                arrived.removeFirst(part.count)
                return .bytes(part.count)
            }
        }
        var later = parts.dropFirst()
        var reader = RequestReader()
        let source = Source()
        source.arrived = Array((Self.start + "Content-Length: 5\r\n\r\n" + parts[0]).utf8)
        var buffer = [UInt8](repeating: 0, count: 1024)
        _ = buffer.withUnsafeMutableBytes { reader.read(into: $0, from: source) }
        let received = reader.receiveContent(atMost: limit, from: source) {
            guard let next = later.popFirst() else { return false }
            source.arrived = Array(next.utf8)
            return true
        }
        #expect(received == isComplete)
    }

    private static let malformedHeads: [(String, String)] = [
        ("PUT / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", "malformed-head"),
        ("PUT / HTTP/1.1\r\nHost: a\r\n\0\r\n\r\n", "malformed-head"),
        ("\0PUT / HTTP/1.1\r\nHost: a\r\n\r\n", "malformed-head"),
        ("\0\r\nPUT / HTTP/1.1\r\nHost: a\r\n\r\n", "malformed-head"),
        ("\rPUT / HTTP/1.1\r\nHost: a\r\n\r\n", "malformed-head"),
        ("\nPUT / HTTP/1.1\r\nHost: a\r\n\r\n", "malformed-head"),
        ("PUT / HTTP/1.1\nHost: a\r\n\r\n", "malformed-head"),
        ("PUT / HTTP/1.1\r\nHost: a\r\n\n", "malformed-head"),
        ("PUT / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "malformed-head"),
        ("PUT / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "malformed-head"),
        ("PUT / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "malformed-head"),
        ("PUT / HTTP/1.1\r\nHost: a\r\nb\r\n\r\n", "malformed-head"),
        ("PUT / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", "invalid-field-name"),
        ("PUT / HTTP/1.1\r\nHost: a\r\nX: \u{1}\r\n\r\n", "invalid-field-value"),
        ("PUT /\r\nHost: a\r\n\r\n", "malformed-request-line"),
        (String(repeating: "\r\n", count: 40_000) + "PUT / HTTP/1.1\r\nHost: a\r\n\r\n", "malformed-request-line"),
        ("PUT  / HTTP/1.1\r\nHost: a\r\n\r\n", "malformed-request-line"),
        ("PUT / HTTP/1.1 \r\nHost: a\r\n\r\n", "malformed-request-line"),
        ("P(T / HTTP/1.1\r\nHost: a\r\n\r\n", "malformed-request-line"),
        ("PUT / http/1.1\r\nHost: a\r\n\r\n", "malformed-request-line"),
        ("PUT /#a HTTP/1.1\r\nHost: a\r\n\r\n", "malformed-target"),
        ("PUT / HTTP/2.0\r\nHost: a\r\n\r\n", "unsupported-http-version"),
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: +45\r\n\r\n", "invalid-content-length"),
        ("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n", "content-length-overflow"),
        (
            "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
            "unknown-transfer-coding"
        ),
        ("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\u{b}chunked\r\n\r\n", "invalid-field-value"),
        ("PUT /\(String(repeating: "a", count: 70_000)) HTTP/1.1\r\nHost: a\r\n\r\n", "target-too-long"),
        ("PUT / HTTP/1.1\r\nX: \(String(repeating: "a", count: 70_000))\r\n\r\n", "head-too-large"),
        ("PUT / HTTP/1.1\r\n\(String(repeating: "a:\r\n", count: 1100))\r\n", "head-too-large"),
    ]

    @Test(
        "H11-03 H11-05 H11-07 H11-08 H11-18 H11-22: a refused head is the last request, and later input is not read",
        arguments: malformedHeads, ["", start + "Content-Length: 1\r\n\r\n1", chunks + "0\r\n\r\n"])
    func malformedHead(item: (text: String, code: String), before: String) {
        let text = before + item.text + Self.start + "\r\n"
        let counts =
            text.utf8.count < 1000 ? [Array(0..<text.utf8.count)] + (0...text.utf8.count).map { [$0] } : [[], [1]]
        for cuts in counts {
            let input = ReadInput(text, cuts: cuts)
            #expect(input.refusal == item.code && input.requests.count == (before.isEmpty ? 1 : 2), "\(cuts)")
        }
    }

    private static let malformedChunks: [(String, String, String)] = [
        ("0\r\n\0\r\n", "", "malformed-trailer"), ("0\r\n\0X: y\r\n\r\n", "", "malformed-trailer"),
        ("0\r\nX: y\0\r\n\r\n", "", "malformed-trailer"), ("0\r\nX: \ry\r\n\r\n", "", "malformed-trailer"),
        ("0\r\n\r\0\n", "", "malformed-trailer"), ("0\r\nX\r\n\r\n", "", "malformed-trailer"),
        ("0\r\n X: y\r\n\r\n", "", "malformed-trailer"), ("0\r\nX: y\n\r\n", "", "bare-line-feed"),
        ("0\r\n\n", "", "bare-line-feed"), ("0\n\r\n", "", "bare-line-feed"),
        ("5\r\nhello\n0\r\n\r\n", "hello", "bare-line-feed"), ("5\nhello\r\n", "", "bare-line-feed"),
        ("5\0\r\nhello\r\n", "", "malformed-chunk"), ("5;\0\r\nhello\r\n", "", "malformed-chunk"),
        ("5;a\rb\r\nhello\r\n", "", "malformed-chunk"), ("5 \r\nhello\r\n", "", "malformed-chunk"),
        ("\0\r\nhello\r\n", "", "malformed-chunk"), ("+5\r\nhello\r\n", "", "malformed-chunk"),
        ("0x5\r\nhello\r\n", "", "malformed-chunk"), ("\r\nhello\r\n", "", "malformed-chunk"),
        ("xyz\r\nhello\r\n", "", "malformed-chunk"), ("-1\r\nhello\r\n", "", "malformed-chunk"),
        (" 5\r\nhello\r\n", "", "malformed-chunk"), ("FFFFFFFFFFFFFFFFF\r\nhello\r\n", "", "malformed-chunk"),
        ("10000000000000000\r\nhello\r\n", "", "malformed-chunk"),
        ("8000000000000000\r\n", "", "malformed-chunk"), ("5\r\nhello0\r\n\r\n", "hello", "malformed-chunk"),
        ("1\r\na\r\n1\r\nb\r\rc", "ab", "malformed-chunk"), ("1\r\nab\r\n0\r\n\r\n", "a", "malformed-chunk"),
        ("5;" + String(repeating: "a", count: 20_000) + "\r\nhello\r\n", "", "malformed-chunk"),
        ("0\r\nX: " + String(repeating: "a", count: 20_000) + "\r\n\r\n", "", "trailer-too-large"),
    ]

    @Test(
        "H11-10 H11-11 H11-17 H11-22 H11-23: only the content before a syntax error in chunks is delivered",
        arguments: malformedChunks)
    func malformedChunk(text: String, content: String, code: String) {
        let bytes = Self.chunks + text + Self.start + "\r\n"
        for cuts in bytes.utf8.count < 1000 ? (0...bytes.utf8.count).map({ [$0] }) : [[]] {
            let input = ReadInput(bytes, cuts: cuts)
            #expect(input.refusal == code && input.requests.count == 1, "\(cuts)")
            // libmicrohttpd calls the server, and gets no end of the content.
            #expect(input.text.hasSuffix("\r\n1\r\n?\r\n"))
            #expect(input.contents == [content + "…"], "\(cuts)")
        }
    }

    @Test(
        "Content that arrives together is returned in few reads, even if its chunks are small",
        arguments: [true, false])
    func gathering(isRecordwise: Bool) {
        let content = String(repeating: "1\r\nx\r\n", count: 10_000)
        let cuts = isRecordwise ? [] : [60_000]
        let input = ReadInput(Self.chunks + content + "0\r\n\r\n", cuts: cuts, isRecordwise: isRecordwise)
        #expect(input.contents == [String(repeating: "x", count: 10_000)])
        #expect(input.reads <= 3)
        let small = ReadInput(Self.chunks + content + "0\r\n\r\n", room: 300)
        #expect(small.contents == input.contents)
    }

    @Test("input after a refusal is discarded up to a maximum, and then the connection ends")
    func discarding() {
        final class Endless: ByteSource {
            let isRecordwise = false
            var head = Array("GET /\r\n\r\n".utf8)
            var count: Int64 = 0

            func receive(into buffer: UnsafeMutableRawBufferPointer) -> RequestReader.Arrival {
                if !head.isEmpty {
                    defer { head = [] }
                    buffer.copyBytes(from: head)
                    return .bytes(head.count)
                }
                count += Int64(buffer.count)
                return .bytes(buffer.count)
            }
        }
        let source = Endless()
        var reader = RequestReader()
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        for _ in 0..<5000 {
            if case .end = buffer.withUnsafeMutableBytes({ reader.read(into: $0, from: source) }) { break }
        }
        #expect(source.count >= 256 << 20 && source.count < 257 << 20)
        let last = buffer.withUnsafeMutableBytes { reader.read(into: $0, from: source) }
        #expect(last == .end(0))
        #expect(source.count < 257 << 20)
    }

    @Test("H11-16: the text for libmicrohttpd keeps HTTP/1.0, HEAD and the connection options of a request")
    func meaning() {
        #expect(
            ReadInput("GET / HTTP/1.0\r\nConnection: a, Keep-Alive\r\n\r\n").text
                == "POST / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
        #expect(
            ReadInput("HEAD /x HTTP/1.1\r\nHost: b\r\nConnection: Close\r\n\r\n").text
                == "HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        #expect(ReadInput("GET /x HTTP/1.7\r\nHost: b\r\n\r\n").requests.first?.head.version == .http11)
    }
}
