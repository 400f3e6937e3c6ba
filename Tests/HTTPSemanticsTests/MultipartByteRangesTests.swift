import HTTPSemantics
import TestSupport
import Testing

@Suite struct MultipartByteRangesTests {
    /// The multipart content for this representation.
    private func render(_ multipart: MultipartByteRanges, of representation: [UInt8]) -> [UInt8] {
        multipart.segments.flatMap { segment -> [UInt8] in
            switch segment {
            case .bytes(let bytes): bytes
            case .range(let range): Array(representation[Int(range.lowerBound)..<Int(range.upperBound)])
            }
        }
    }

    @Test("RNG-08: every part has its own Content-Range and Content-Type")
    func layout() throws {
        let multipart = try #require(
            MultipartByteRanges(boundary: "b-1", ranges: [6..<8, 0..<2], size: 10, contentType: "text/plain"))
        let expected = """
            --b-1\r
            Content-Type: text/plain\r
            Content-Range: bytes 6-7/10\r
            \r
            67\r
            --b-1\r
            Content-Type: text/plain\r
            Content-Range: bytes 0-1/10\r
            \r
            01\r
            --b-1--\r\n
            """
        #expect(String(decoding: render(multipart, of: Array("0123456789".utf8)), as: UTF8.self) == expected)
        #expect(multipart.contentType == "multipart/byteranges; boundary=b-1")
        #expect(multipart.boundary == "b-1")
        #expect(MediaType(parsing: multipart.contentType)?.parameter("boundary") == "b-1")
    }

    @Test("RNG-26: the announced length is the number of bytes sent", arguments: SeededGenerator.seeds)
    func length(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let representation = (0..<100).map { _ in UInt8.random(in: 0...255, using: &generator) }
        for _ in 0..<200 {
            let ranges = (0..<Int.random(in: 1...5, using: &generator)).map { _ in
                let first = Int64.random(in: 0..<100, using: &generator)
                return first..<Int64.random(in: (first + 1)...100, using: &generator)
            }
            let type = Bool.random(using: &generator) ? "image/png" : nil
            let multipart = try #require(
                MultipartByteRanges(boundary: "x", ranges: ranges, size: 100, contentType: type))
            #expect(multipart.contentLength == Int64(render(multipart, of: representation).count))
            let sent = multipart.segments.compactMap { if case .range(let range) = $0 { range } else { nil } }
            #expect(sent == ranges)
        }
    }

    @Test("SEC-18: arguments that would break the message are refused")
    func refused() {
        func isRefused(
            _ boundary: String = "b", _ ranges: [Range<Int64>] = [0..<1], size: Int64 = 10, type: String? = nil
        ) -> Bool {
            MultipartByteRanges(boundary: boundary, ranges: ranges, size: size, contentType: type) == nil
        }
        #expect(!isRefused())
        for boundary in ["", "a b", "a\r\nb", "a\"", "é", "a/b", String(repeating: "b", count: 71)] {
            #expect(isRefused(boundary))
        }
        #expect(isRefused("b", []))
        #expect(isRefused("b", [0..<0]))
        #expect(isRefused("b", [5..<11]))
        #expect(isRefused("b", [-1..<2]))
        #expect(isRefused(type: "text/plain\r\nX: y"))
        #expect(isRefused("b", [0..<(.max)], size: .max))
    }
}
