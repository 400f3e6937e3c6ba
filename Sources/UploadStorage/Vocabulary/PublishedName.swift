/// The name of a published file: its path below the root of published files, one string a segment, decoded.
public struct PublishedName: Hashable, Sendable {
    /// The segments of the path, at least one.
    public let segments: [String]

    /// Nil for what could leave the root or cannot be a file's name: no segment, empty ones, ".", "..", "/" or NUL in one, more
    /// than 255 bytes of UTF-8 in one.
    public init?(segments: [String]) {
        guard !segments.isEmpty, segments.allSatisfy(Self.isValid) else { return nil }
        self.segments = segments
    }

    /// The reverse of ``path``. A slash separates also before a character that combines with it.
    public init?(path: String) {
        self.init(segments: path.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) })
    }

    /// The directory that contains the file.
    public var directory: Directory { Directory(trusted: Array(segments.dropLast())) }

    /// The directory of the same name.
    var asDirectory: Directory { Directory(trusted: segments) }

    /// The last segment.
    public var lastSegment: String { segments[segments.count - 1] }

    /// The segments with "/" between them, without one at the start.
    public var path: String { segments.joined(separator: "/") }

    static func isValid(_ segment: String) -> Bool {
        !segment.isEmpty && segment != "." && segment != ".." && segment.utf8.count <= 255
            && segment.utf8.allSatisfy { $0 != 0 && $0 != UInt8(ascii: "/") }
    }

    /// A directory of published files.
    public struct Directory: Hashable, Sendable {
        /// The segments of the path; empty for the root.
        public let segments: [String]

        /// The directory `files/` itself.
        public static let root = Directory(trusted: [])

        /// Creates the path of a directory; nil as for ``PublishedName/init(segments:)``, except that an empty path is the root.
        public init?(segments: [String]) {
            guard segments.allSatisfy(PublishedName.isValid) else { return nil }
            self.segments = segments
        }

        fileprivate init(trusted segments: [String]) {
            self.segments = segments
        }

        /// The name of an entry; nil if `PublishedName` refuses it.
        public func appending(_ segment: String) -> PublishedName? {
            PublishedName(segments: segments + [segment])
        }
    }
}

extension PublishedName: CustomStringConvertible {
    /// The path, its segments separated by slashes.
    public var description: String { path }
}
