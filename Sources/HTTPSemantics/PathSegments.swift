/// The segments of a path, percent-decoded exactly once. Each is safe as the name of a file or directory.
///
/// Decoding rejects everything that two recipients could interpret differently (RFC 3986 section 7.3): slashes and
/// backslashes inside a segment, dot segments, control characters, empty segments, malformed escapes and invalid UTF-8.
public struct PathSegments: Sendable, Hashable {
    /// The reason why a path is rejected. The raw value is the stable code of problem documents.
    public enum Refusal: String, Error, Hashable, Sendable {
        /// The path does not begin with "/".
        case notAbsolute = "path-not-absolute"
        /// A byte that must not be in a path: not visible ASCII, or one of "?" and "#".
        case illegalCharacter = "path-illegal-character"
        /// "%" without two hexadecimal digits after it.
        case malformedEscape = "path-malformed-escape"
        /// U+0000
        case nul = "path-nul"
        /// Another control character: U+0001…U+001F, U+007F…U+009F.
        case controlCharacter = "path-control-character"
        /// "/" inside a segment, which is "%2F" on the wire.
        case encodedSlash = "path-encoded-slash"
        /// "\", plain or encoded.
        case backslash = "path-backslash"
        /// "." or "..", plain or encoded.
        case dotSegment = "path-dot-segment"
        /// An empty segment other than the one after a trailing slash.
        case emptySegment = "path-empty-segment"
        /// A segment of more than 255 bytes of UTF-8.
        case segmentTooLong = "path-segment-too-long"
        /// A decoded path of more than 4096 bytes, slashes included.
        case pathTooLong = "path-too-long"
        /// More than 100 segments.
        case pathTooDeep = "path-too-deep"
        /// The decoded bytes are not UTF-8.
        case invalidUTF8 = "path-invalid-utf8"
    }

    /// The maximum number of bytes of UTF-8 in one decoded segment.
    public static let maxSegmentLength = 255
    /// The maximum number of bytes of UTF-8 in the decoded path, slashes included.
    public static let maxPathLength = 4096
    /// The maximum number of segments. Each segment except the last needs a directory when the file is published, and
    /// quotas do not count directories.
    public static let maxDepth = 100

    /// The decoded segments, none of them empty; no segment at all for "/".
    public let segments: [String]
    /// Whether the path ends with a slash; always true for "/".
    public let hasTrailingSlash: Bool

    /// Decodes a raw path such as ``RequestTarget/path``.
    /// - Throws: the reason why no file can have this path.
    public init(decoding rawPath: String) throws(Refusal) {
        let (decoded, endsWithSlash) = try rawPath.withBytes { bytes in
            Result { () throws(Refusal) in try PathSegments.decode(bytes) }
        }.get()
        try self.init(segments: decoded, hasTrailingSlash: endsWithSlash)
    }

    /// Decodes a raw path that belongs to no file, and that the server forwards unchanged. Such a path may have empty
    /// segments, encoded slashes, segments of any length, and any number of segments.
    /// - Returns: the decoded segments, and the segments that a recipient gets if it removes empty segments and decodes
    ///   slashes; `nil` if a recipient could get a dot segment, or the path is malformed or has forbidden characters.
    package static func decodeForwarded(_ rawPath: String) -> (segments: [String], normalized: [String])? {
        let decoded = rawPath.withBytes { bytes in
            Result { () throws(Refusal) in try PathSegments.decode(bytes).segments }
        }
        guard let segments = try? decoded.get() else { return nil }
        var normalized: [String] = []
        for segment in segments {
            for piece in segment.split(separator: "/") {
                guard piece != ".", piece != "..", (try? checkCharacters(of: String(piece))) != nil else { return nil }
                normalized.append(String(piece))
            }
        }
        return (segments, normalized)
    }

    /// Creates a path from decoded segments, and checks them like the segments of a raw path after its decoding.
    /// - Throws: the reason why no file can have this path.
    public init(segments: [String], hasTrailingSlash: Bool = false) throws(Refusal) {
        var total = segments.isEmpty || hasTrailingSlash ? 1 : 0
        for segment in segments {
            try PathSegments.check(segment)
            total += 1 + segment.utf8.count
        }
        guard total <= PathSegments.maxPathLength else { throw .pathTooLong }
        guard segments.count <= PathSegments.maxDepth else { throw .pathTooDeep }
        self.segments = segments
        self.hasTrailingSlash = hasTrailingSlash || segments.isEmpty
    }

    /// The path on the wire. Every byte of a segment that is not a `pchar` (RFC 3986 section 3.3) is percent-encoded
    /// with upper-case digits.
    public var percentEncoded: String {
        var path = ""
        path.reserveCapacity(segments.reduce(1) { $0 + 1 + $1.utf8.count })
        for segment in segments {
            path += "/"
            if segment.withBytes({ $0.allSatisfy(\.isPathCharacter) }) {
                path += segment
            } else {
                path += segment.utf8.percentEncoded(allowing: \.isPathCharacter)
            }
        }
        return hasTrailingSlash ? path + "/" : path
    }

    private static func decode(
        _ bytes: UnsafeBufferPointer<UInt8>
    ) throws(Refusal) -> (segments: [String], endsWithSlash: Bool) {
        guard bytes.first == UInt8(ascii: "/") else { throw .notAbsolute }
        guard bytes.count <= 3 * PathSegments.maxPathLength else { throw .pathTooLong }
        var segments: [String] = []
        segments.reserveCapacity(4)
        var start = 1
        while start < bytes.count {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "/")) ?? bytes.count
            segments.append(try decode(bytes[start..<end]))
            start = end + 1
        }
        return (segments, bytes[bytes.count - 1] == UInt8(ascii: "/"))
    }

    private static func decode(_ part: Slice<UnsafeBufferPointer<UInt8>>) throws(Refusal) -> String {
        // Most segments have no escapes and need no copy.
        if part.allSatisfy({ $0.isUnreserved }) {
            return String(decoding: UnsafeBufferPointer(rebasing: part), as: UTF8.self)
        }
        guard let segment = String(validating: try decodeEscapes(part), as: UTF8.self) else { throw .invalidUTF8 }
        return segment
    }

    private static func decodeEscapes(_ part: Slice<UnsafeBufferPointer<UInt8>>) throws(Refusal) -> [UInt8] {
        for byte in part {
            if byte == 0 { throw .nul }
            if byte < 0x20 || byte == 0x7F { throw .controlCharacter }
            guard (0x21...0x7E).contains(byte), !"?#".utf8.contains(byte) else { throw .illegalCharacter }
        }
        guard let bytes = part.percentDecoded else { throw .malformedEscape }
        return bytes
    }

    private static func check(_ segment: String) throws(Refusal) {
        guard !segment.utf8.isEmpty else { throw .emptySegment }
        if !segment.withBytes({ $0.allSatisfy(\.isUnreserved) }) { try checkCharacters(of: segment) }
        guard segment != ".", segment != ".." else { throw .dotSegment }
        guard segment.utf8.count <= maxSegmentLength else { throw .segmentTooLong }
    }

    private static func checkCharacters(of segment: String) throws(Refusal) {
        for scalar in segment.unicodeScalars {
            switch scalar {
            case "\0": throw .nul
            case "\u{01}"..."\u{1F}", "\u{7F}"..."\u{9F}": throw .controlCharacter
            case "/": throw .encodedSlash
            case "\\": throw .backslash
            default: continue
            }
        }
    }
}

extension UInt8 {
    /// `pchar` of RFC 3986 section 3.3 without escapes.
    fileprivate var isPathCharacter: Bool {
        isUnreserved || isSubDelimiter || self == UInt8(ascii: ":") || self == UInt8(ascii: "@")
    }
}
