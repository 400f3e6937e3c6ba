/// The name of a published file: its path below the root of published files, as one decoded string for each segment.
public struct PublishedName: Hashable, Sendable {
    /// The segments of the path, at least one.
    public let segments: [String]

    /// Creates a name from its segments. Returns nil if there is no segment, or if a segment is empty, is "." or "..",
    /// contains "/" or NUL, or has more than 255 bytes of UTF-8. So no name can leave the root.
    public init?(segments: [String]) {
        guard !segments.isEmpty, segments.allSatisfy(Self.isValid) else { return nil }
        self.segments = segments
    }

    /// Creates a name from ``path``. A slash separates segments even if a combining character follows it.
    public init?(path: String) {
        self.init(segments: path.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) })
    }

    /// The directory that contains the file.
    public var directory: Directory { Directory(trusted: Array(segments.dropLast())) }

    /// The directory of the same name.
    var asDirectory: Directory { Directory(trusted: segments) }

    /// The last segment.
    public var lastSegment: String { segments[segments.count - 1] }

    /// The segments with "/" between them, without a slash at the start.
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

        /// Creates the path of a directory. Returns nil in the same cases as ``PublishedName/init(segments:)``, except
        /// that an empty path is the root.
        public init?(segments: [String]) {
            guard segments.allSatisfy(PublishedName.isValid) else { return nil }
            self.segments = segments
        }

        fileprivate init(trusted segments: [String]) {
            self.segments = segments
        }

        /// Returns the name of an entry of this directory; nil if that is not a valid name.
        public func appending(_ segment: String) -> PublishedName? {
            PublishedName(segments: segments + [segment])
        }
    }
}

extension PublishedName: CustomStringConvertible {
    /// The path, its segments separated by slashes.
    public var description: String { path }
}
