import HTTPSemantics
import TestSupport
import Testing

@testable import HTTPTransport

/// The parser of the responses that a gateway forwards.
@Suite struct ArrivingResponseTests {
    private static func request(_ method: HTTPSemantics.Method) -> TransportRequest {
        TransportRequest(
            uri: "http://host/", method: method, fields: [:], stallTimeout: nil,
            settings: TransportSettings(proxy: "", httpVersion: .http1, connectTimeout: .seconds(1)),
            receive: { _ in .abort })
    }

    /// Parses the input in pieces.
    private static func parse(
        _ text: String, _ method: HTTPSemantics.Method = .get, pieces: (Int) -> Int = { $0 }
    ) -> ArrivingResponse {
        var response = ArrivingResponse(to: request(method))
        var remaining = Array(text.utf8)[...]
        while !remaining.isEmpty {
            var piece = Array(remaining.prefix(pieces(remaining.count)))
            remaining = remaining.dropFirst(piece.count)
            piece.withUnsafeMutableBytes { response.receive($0) }
        }
        return response
    }

    @Test(
        "the framing determines the content, however the input is divided (RFC 9112 section 6.3)",
        arguments: [
            ("Content-Length: 5\r\n\r\nhello", "hello", true, true),
            ("Content-Length: 0\r\n\r\n", "", true, true),
            ("Content-Length: 5, 5\r\n\r\nhello", "hello", true, true),
            ("Content-Length: 5\r\n\r\nhell", "hell", false, false),
            ("Content-Length: 5\r\n\r\nhello, and more", "hello", true, false),
            (
                "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\nTrailer: a\r\n\r\n", "hello!", true,
                true
            ),
            ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "hello", false, false),
            ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n", nil, false, false),
            ("Transfer-Encoding: chunked\r\n\r\nx\r\n", nil, false, false),
            ("\r\nto the end", "to the end", false, false),
            ("Connection: x, Close\r\nContent-Length: 1\r\n\r\na", "a", true, false),
        ] as [(String, String?, Bool, Bool)])
    func framing(_ text: String, _ content: String?, _ isComplete: Bool, _ isConnectionKept: Bool) {
        var generator = SeededGenerator.part(1)
        for round in 0..<50 {
            var response = Self.parse("HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n" + text) {
                round == 0 ? $0 : round == 1 ? 1 : Int.random(in: 1...8, using: &generator)
            }
            #expect(response.interims.map(\.status) == [103] && response.interims[0].fields["A"] == "b")
            #expect((response.failure != nil) == (content == nil), "\(text)")
            #expect(response.isComplete == isComplete && response.isConnectionKept == isConnectionKept, "\(text)")
            guard let content else { continue }
            #expect(response.head?.status == 200 && response.received == content.utf8.count)
            #expect(String(decoding: response.readAll(), as: UTF8.self) == content)
        }
    }

    @Test("content without a length ends with the connection, which is not used again")
    func endOfConnection() {
        var response = Self.parse("HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(!response.isComplete)
        response.endInput()
        #expect(response.isComplete && !response.isConnectionKept && response.readAll() == Array("hello".utf8))
        var incomplete = Self.parse("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello")
        incomplete.endInput()
        #expect(!incomplete.isComplete)
    }

    @Test(
        "a response without content is complete after its head; if it states content, its connection is not used again")
    func noContent() {
        for (text, method) in [
            ("HTTP/1.1 204 No\r\n", .get), ("HTTP/1.1 304 No\r\n", .get), ("HTTP/1.1 200 OK\r\n", .head),
        ] as [(String, HTTPSemantics.Method)] {
            let plain = Self.parse(text + "\r\n", method)
            #expect(plain.isComplete && plain.isConnectionKept, "\(text)")
            for field in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
                let stating = Self.parse("\(text)\(field)\r\n\r\n", method)
                #expect(stating.isComplete && !stating.isConnectionKept, "\(text) \(field)")
            }
        }
    }

    @Test("a connection in HTTP/1.0 is not used again, and a head without an end is refused")
    func others() {
        #expect(Self.parse("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").isConnectionKept == false)
        #expect(Self.parse("HTTP/1.1 200 OK\r\nA: " + String(repeating: "a", count: 40_000)).failure != nil)
        #expect(Self.parse(String(repeating: "a", count: 40_000)) { _ in 7 }.failure != nil)
        #expect(Self.parse("HTTP/1.1 200 OK\r\n folded\r\n\r\n").failure != nil)
        #expect(Self.parse("<html>HTTP/0.9").failure != nil && Self.parse("HTT").failure == nil)
    }

    @Test("content is kept until it is read, and no more is requested while there is too much of it")
    func room() {
        var response = Self.parse(
            "HTTP/1.1 200 OK\r\nContent-Length: 600000\r\n\r\n" + String(repeating: "a", count: 300_000))
        #expect(!response.hasRoom && response.received == 300_000)
        var buffer = [UInt8](repeating: 0, count: 100_000)
        #expect(buffer.withUnsafeMutableBytes { response.read(into: $0) } == 100_000)
        #expect(response.hasRoom)
        var more = [UInt8](repeating: UInt8(ascii: "b"), count: 300_000)
        more.withUnsafeMutableBytes { response.receive($0) }
        #expect(response.isComplete)
        let content = response.readAll()
        #expect(content.count == 500_000 && content.first == UInt8(ascii: "a") && content.last == UInt8(ascii: "b"))
    }
}
