/// The segments of a path, percent-decoded exactly once. Each is safe as the name of a file or directory.
///
/// Decoding rejects everything that two recipients could interpret differently (RFC 3986 §7.3): separators and dot
/// segments in any spelling, control characters, empty segments, malformed escapes and UTF-8.
public struct PathSegments: Sendable, Hashable {
    /// Why a path is rejected. The raw value is the stable code of problem documents.
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
    public static let maximumSegmentLength = 255
    /// The maximum number of bytes of UTF-8 in the decoded path, slashes included.
    public static let maximumPathLength = 4096
    /// The maximum number of segments. Each segment needs a directory when the file is published, and quotas do not
    /// count directories.
    public static let maximumDepth = 100

    /// The decoded segments, none of them empty; no segment at all for "/".
    public let segments: [String]
    /// Whether the path ends with a slash; always true for "/".
    public let hasTrailingSlash: Bool

    /// Decodes a raw path such as ``RequestTarget/path``.
    public init(decoding rawPath: String) throws(Refusal) {
        let bytes = Array(rawPath.utf8)
        guard bytes.first == 0x2F else { throw .notAbsolute }
        guard bytes.count <= 3 * PathSegments.maximumPathLength else { throw .pathTooLong }
        var parts = bytes[1...].split(separator: 0x2F, omittingEmptySubsequences: false)
        let endsWithSlash = parts.last?.isEmpty ?? true
        if endsWithSlash { parts.removeLast() }
        var decoded: [String] = []
        decoded.reserveCapacity(parts.count)
        for part in parts {
            let bytes = try PathSegments.decodeEscapes(part)
            guard let segment = String(validating: bytes, as: UTF8.self) else { throw .invalidUTF8 }
            decoded.append(segment)
        }
        try self.init(segments: decoded, hasTrailingSlash: endsWithSlash)
    }

    /// Checks decoded segments by the same rules.
    public init(segments: [String], hasTrailingSlash: Bool = false) throws(Refusal) {
        var total = segments.isEmpty || hasTrailingSlash ? 1 : 0
        for segment in segments {
            try PathSegments.check(segment)
            total += 1 + segment.utf8.count
        }
        guard total <= PathSegments.maximumPathLength else { throw .pathTooLong }
        guard segments.count <= PathSegments.maximumDepth else { throw .pathTooDeep }
        self.segments = segments
        self.hasTrailingSlash = hasTrailingSlash || segments.isEmpty
    }

    /// The path on the wire: every byte but `pchar` (RFC 3986 §3.3) percent-encoded with upper-case digits.
    public var percentEncoded: String {
        let encoded = segments.map { segment in
            segment.utf8.percentEncoded { $0.isUnreserved || $0.isSubDelimiter || $0 == 0x3A || $0 == 0x40 }
        }
        let path = "/" + encoded.joined(separator: "/")
        return hasTrailingSlash && !segments.isEmpty ? path + "/" : path
    }

    private static func decodeEscapes(_ part: ArraySlice<UInt8>) throws(Refusal) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(part.count)
        var index = part.startIndex
        while index < part.endIndex {
            let byte = part[index]
            if byte == 0x25 {
                guard index + 2 < part.endIndex, let high = part[index + 1].hexDigitValue,
                    let low = part[index + 2].hexDigitValue
                else { throw .malformedEscape }
                result.append(high << 4 | low)
                index += 3
            } else {
                if byte == 0 { throw .nul }
                if byte < 0x20 || byte == 0x7F { throw .controlCharacter }
                guard (0x21...0x7E).contains(byte), byte != 0x3F, byte != 0x23 else { throw .illegalCharacter }
                result.append(byte)
                index += 1
            }
        }
        return result
    }

    private static func check(_ segment: String) throws(Refusal) {
        guard !segment.utf8.isEmpty else { throw .emptySegment }
        for scalar in segment.unicodeScalars {
            switch scalar.value {
            case 0: throw .nul
            case 0x01...0x1F, 0x7F...0x9F: throw .controlCharacter
            case 0x2F: throw .encodedSlash
            case 0x5C: throw .backslash
            default: continue
            }
        }
        guard segment != ".", segment != ".." else { throw .dotSegment }
        guard segment.utf8.count <= maximumSegmentLength else { throw .segmentTooLong }
    }
}
