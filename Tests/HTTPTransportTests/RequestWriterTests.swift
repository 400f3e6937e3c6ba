import HTTPSemantics
import Testing

@testable import HTTPTransport

/// The writer of the requests that a gateway sends.
@Suite struct RequestWriterTests {
    private static func writer(
        _ uri: String = "http://host:81/a?b#c", _ method: HTTPSemantics.Method = .post, _ fields: Fields = [:],
        _ content: RequestContent = .none, source: (any UploadSource)? = nil, target: String? = nil
    ) -> RequestWriter? {
        var request = TransportRequest(
            uri: uri, method: method, fields: fields, content: content, source: source, stallTimeout: nil,
            settings: TransportSettings(proxy: "", httpVersion: .http1, connectTimeout: .seconds(1)),
            receive: { _ in .abort })
        request.target = target
        return RequestWriter(request)
    }

    /// Sends everything that the writer has, in pieces.
    private static func send(_ writer: inout RequestWriter, piece: Int = .max) -> [UInt8] {
        var sent: [UInt8] = []
        while true {
            if !writer.hasUnsent { writer.fill() }
            if !writer.hasUnsent { return sent }
            let bytes = writer.withUnsent { Array($0.prefix(piece)) }
            sent += bytes
            writer.advance(bytes.count)
        }
    }

    private static func text(_ writer: RequestWriter?) -> String? {
        guard var writer else { return nil }
        return String(decoding: send(&writer), as: UTF8.self)
    }

    @Test("the head has the target, Host first, the fields, and the framing that the content determines")
    func head() {
        let fields: Fields = [
            "A": "b", "Content-Length": "7", "Host": "other", "transfer-encoding": "x", "Expect": "100-continue",
            "E": "",
        ]
        #expect(Self.text(Self.writer()) == "POST /a?b HTTP/1.1\r\nHost: host:81\r\n\r\n")
        #expect(Self.text(Self.writer("http://host")) == "POST / HTTP/1.1\r\nHost: host\r\n\r\n")
        #expect(
            Self.text(Self.writer("http://host/", .put, fields, .empty, target: "/%2F?x"))
                == "PUT /%2F?x HTTP/1.1\r\nHost: other\r\nA: b\r\nE: \r\nContent-Length: 0\r\n\r\n")
        // The content of HEAD is not sent.
        #expect(Self.text(Self.writer("http://h/", .head, [:], .empty)) == "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
    }

    @Test("bytes of values that are not UTF-8 stay as they are")
    func opaque() throws {
        let value = [UInt8(0xE9), 0x20, 0xC3, 0xA9].withUnsafeBytes { String(fieldBytes: $0) }
        var writer = try #require(Self.writer("http://h/", .get, ["A": value]))
        #expect(
            Self.send(&writer) == Array("GET / HTTP/1.1\r\nHost: h\r\nA: ".utf8) + [0xE9, 0x20, 0xC3, 0xA9]
                + Array("\r\n\r\n".utf8))
    }

    @Test("what could be read as another request is not sent")
    func invalid() {
        #expect(Self.writer(target: "/a b") == nil)
        #expect(Self.writer(target: "/a\r\nB: c") == nil)
        #expect(Self.writer("http://h/", .init(rawValue: "GET /x HTTP/1.1\r\n"), [:]) == nil)
        #expect(Self.writer("http://h/", .get, ["A": "b\r\nC: d"]) == nil)
        #expect(Self.writer("http://h/", .get, ["A b": "c"]) == nil)
    }

    @Test("content of a known length is sent without framing, other content in chunks", arguments: [1, 100, Int.max])
    func content(piece: Int) throws {
        let content = Array("the content".utf8)
        var known = try #require(
            Self.writer("http://h/", .put, [:], .range(from: 4, count: 7), source: PiecewiseSource(content)))
        #expect(
            String(decoding: Self.send(&known, piece: piece), as: UTF8.self)
                == "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\ncontent")
        #expect(known.isSent && known.sentCount == 7)
        var unknown = try #require(
            Self.writer("http://h/", .put, [:], .remaining(from: 0, atMost: nil), source: PiecewiseSource(content)))
        #expect(
            String(decoding: Self.send(&unknown, piece: piece), as: UTF8.self)
                == "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nthe\r\n3\r\n co\r\n3\r\nnte\r\n2\r\nnt\r\n0\r\n\r\n"
        )
        #expect(unknown.isSent)
        var limited = try #require(
            Self.writer("http://h/", .put, [:], .remaining(from: 0, atMost: 4), source: PiecewiseSource(content)))
        #expect(
            String(decoding: Self.send(&limited, piece: piece), as: UTF8.self).hasSuffix(
                "3\r\nthe\r\n1\r\n \r\n0\r\n\r\n"))
    }

    @Test("a source that ends too early fails the request")
    func short() throws {
        var writer = try #require(
            Self.writer(
                "http://h/", .put, [:], .range(from: 0, count: 12), source: PiecewiseSource(Array("short".utf8))))
        _ = Self.send(&writer)
        #expect(writer.failure == .sourceFailed(at: 5, .unavailable(at: 5)) && !writer.isSent)
    }
}

/// Returns at most three bytes at once.
private struct PiecewiseSource: UploadSource {
    let bytes: [UInt8]
    var length: Int64? { Int64(bytes.count) }

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        let piece = bytes.dropFirst(Int(offset)).prefix(min(3, buffer.count))
        buffer.copyBytes(from: piece)
        return piece.count
    }

    func acknowledged(upTo offset: Int64) {}
}
