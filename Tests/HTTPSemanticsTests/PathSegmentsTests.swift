import HTTPSemantics
import TestSupport
import Testing

@Suite struct PathSegmentsTests {
    @Test(arguments: [
        ("/", [], true), ("/a", ["a"], false), ("/a/b/", ["a", "b"], true), ("/a%20b/%C3%A9", ["a b", "é"], false),
        ("/%252e", ["%2e"], false), ("/...", ["..."], false), ("/.hidden", [".hidden"], false),
        ("/a;b=c,d@e:f", ["a;b=c,d@e:f"], false),
        ("/{x}|", ["{x}|"], false),
    ])
    func decoded(path: String, segments: [String], hasTrailingSlash: Bool) throws {
        let decoded = try PathSegments(decoding: path)
        #expect(decoded.segments == segments)
        #expect(decoded.hasTrailingSlash == hasTrailingSlash)
    }

    @Test(
        "SEC-14: ambiguous paths are refused",
        arguments: [
            ("/uploads/..%2f..%2fetc%2fpasswd", PathSegments.Refusal.encodedSlash), ("/a%2Fb", .encodedSlash),
            ("/../etc", .dotSegment), ("/a/..", .dotSegment), ("/a/../", .dotSegment), ("/.", .dotSegment),
            ("/%2e%2E/x", .dotSegment),
            ("/.%2e", .dotSegment), ("/a%5cb", .backslash), ("/..\\x", .backslash), ("/a%00", .nul), ("/a\0", .nul),
            ("/a%0d%0ab", .controlCharacter), ("/%7F", .controlCharacter), ("/%C2%85", .controlCharacter),
            ("/a\tb", .controlCharacter),
            ("//a", .emptySegment), ("/a//b", .emptySegment), ("/a//", .emptySegment), ("//", .emptySegment),
            ("/%", .malformedEscape), ("/%2", .malformedEscape), ("/%zz", .malformedEscape),
            ("/%%32e", .malformedEscape),
            ("/%FF", .invalidUTF8), ("/%C0%AF", .invalidUTF8), ("/%ED%A0%80", .invalidUTF8), ("/%C3", .invalidUTF8),
            ("", .notAbsolute), ("a/b", .notAbsolute), ("*", .notAbsolute), ("/a b", .illegalCharacter),
            ("/é", .illegalCharacter),
            ("/a?b", .illegalCharacter), ("/a#b", .illegalCharacter),
        ])
    func refused(path: String, refusal: PathSegments.Refusal) {
        #expect(throws: refusal) { try PathSegments(decoding: path) }
    }

    @Test func lengthsAreBounded() throws {
        #expect(try PathSegments(decoding: "/" + String(repeating: "%61", count: 255)).segments[0].utf8.count == 255)
        #expect(throws: PathSegments.Refusal.segmentTooLong) {
            try PathSegments(decoding: "/" + String(repeating: "a", count: 256))
        }
        let longest = String(repeating: "/" + String(repeating: "a", count: 127), count: 32)
        #expect(try PathSegments(decoding: longest).segments.count == 32)
        #expect(throws: PathSegments.Refusal.pathTooLong) { try PathSegments(decoding: longest + "/") }
        let deepest = String(repeating: "/a", count: 100)
        #expect(try PathSegments(decoding: deepest + "/").segments.count == 100)
        #expect(throws: PathSegments.Refusal.pathTooDeep) { try PathSegments(decoding: deepest + "/a") }
        #expect(throws: PathSegments.Refusal.pathTooLong) {
            try PathSegments(decoding: String(repeating: "/a", count: 100_000))
        }
    }

    @Test("segments are encoded, and unsafe segments are refused")
    func encoding() throws {
        let path = try PathSegments(segments: ["a b", "é%", "x:@!$&'()*+,;=-._~", "?#[]"], hasTrailingSlash: true)
        #expect(path.percentEncoded == "/a%20b/%C3%A9%25/x:@!$&'()*+,;=-._~/%3F%23%5B%5D/")
        #expect(try PathSegments(segments: []).percentEncoded == "/")
        let root = try PathSegments(decoding: "/")
        let empty = try PathSegments(segments: [])
        #expect(empty == root)
        #expect(throws: PathSegments.Refusal.encodedSlash) { try PathSegments(segments: ["a/b"]) }
        #expect(throws: PathSegments.Refusal.emptySegment) { try PathSegments(segments: ["a", ""]) }
    }

    @Test(
        "SEC-14: every accepted path is safe, and its encoding decodes to the same segments",
        arguments: SeededGenerator.seeds)
    func roundTrip(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let alphabet = Array("/%25eEfF0CcAa9.\\b?é \u{0}")
        for index in 0..<SeededGenerator.count(4_000) {
            let path = index % 2 == 0 ? "/" + generator.string(from: alphabet, upTo: 12) : generator.unicode(upTo: 20)
            guard let decoded = try? PathSegments(decoding: path) else { continue }
            #expect(try PathSegments(decoding: decoded.percentEncoded) == decoded)
            for segment in decoded.segments {
                #expect(![".", "..", ""].contains(segment))
                #expect(!segment.utf8.contains { $0 < 0x20 || $0 == 0x2F || $0 == 0x5C || $0 == 0x7F })
            }
        }
    }
}
