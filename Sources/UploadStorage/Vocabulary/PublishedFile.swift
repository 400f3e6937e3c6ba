import HTTPSemantics
import ResumableUpload
import SystemCalls

/// A published file, opened once: attributes and bytes are those of the same file, even if the name is removed or
/// belongs to another file later.
public final class PublishedFile: Sendable {
    /// The attributes of a file that describe its representation.
    public struct Attributes: Sendable, Hashable {
        /// The size in bytes.
        public var size: Int64
        /// The modification time, in seconds since 1970.
        public var modifiedSeconds: Int64
        /// The nanoseconds of that second. No two publications have the same time.
        public var modifiedNanoseconds: Int64
        /// A strong entity tag, which differs for every publication and every change of the file.
        public var entityTag: EntityTag

        /// Creates attributes from a size in bytes, a modification time since 1970, and a strong entity tag.
        public init(size: Int64, modifiedSeconds: Int64, modifiedNanoseconds: Int64 = 0, entityTag: EntityTag) {
            self.size = size
            self.modifiedSeconds = modifiedSeconds
            self.modifiedNanoseconds = modifiedNanoseconds
            self.entityTag = entityTag
        }
    }

    /// Size, time and entity tag of the file when it was opened.
    public let attributes: Attributes
    /// The representation metadata of the upload, such as Content-Type; empty for a file that no upload created.
    public let fields: Fields
    private let content: any PublishedContent

    package init(attributes: Attributes, fields: Fields = [:], content: any PublishedContent) {
        self.attributes = attributes
        self.fields = fields
        self.content = content
    }

    func described(by fields: Fields) -> PublishedFile {
        PublishedFile(attributes: attributes, fields: fields, content: content)
    }

    /// Reads bytes from the offset on and returns their number, which is smaller than the buffer only at the end.
    /// - Throws: `io` or `unavailable` if the bytes cannot be read.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        try translating("read a published file") { () throws(Errno) in try content.read(into: buffer, at: offset) }
    }

    /// A URL with which the client reads the bytes from another server for a minute; `nil` if there is none. It is a
    /// secret.
    /// - Parameter fields: fields that the response of the other server has.
    package func downloadURL(with fields: Fields) throws(StoreError) -> String? {
        try translating("make a URL for a download") { () throws(Errno) in try content.downloadURL(with: fields) }
    }

    /// A descriptor of the file for calls that copy bytes inside the kernel; `nil` if the bytes are not in a local
    /// file. The caller owns and closes it.
    package func duplicateForSending() throws(StoreError) -> Int32? {
        try translating("duplicate a descriptor") { () throws(Errno) in try content.duplicateForSending() }
    }
}

/// The name of a published file: its path below the root of published files, as one decoded string for each segment.
public struct PublishedName: Hashable, Sendable {
    /// The segments of the path, at least one.
    public let segments: [String]

    /// Creates a name from its segments. Returns `nil` if there is no segment, or if a segment is empty, is "." or
    /// "..", contains "/" or NUL, or has more than 255 bytes of UTF-8. So no name can leave the root.
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

        /// Creates the path of a directory. Returns `nil` in the same cases as ``PublishedName/init(segments:)``,
        /// except that an empty path is the root.
        public init?(segments: [String]) {
            guard segments.allSatisfy(PublishedName.isValid) else { return nil }
            self.segments = segments
        }

        fileprivate init(trusted segments: [String]) {
            self.segments = segments
        }

        /// Returns the name of an entry of this directory; `nil` if that is not a valid name.
        public func appending(_ segment: String) -> PublishedName? {
            PublishedName(segments: segments + [segment])
        }
    }
}

extension PublishedName: CustomStringConvertible {
    /// The path, its segments separated by slashes.
    public var description: String { path }
}

/// The description of how an upload is published as a file, and of the final response.
public struct Publication: Sendable {
    /// The name under which the file is published.
    public var name: PublishedName
    /// The representation metadata, such as Content-Type, that is served with the file.
    public var fields: Fields
    /// Evaluates the file that has the name now, or `nil` if there is none. The file cannot change between this call
    /// and the publication. If a response is returned, nothing is published, this response is the final response, and
    /// the bytes are removed. The name is locked during the call, so the closure must not call the store.
    public var condition: @Sendable (PublishedFile.Attributes?) -> Response?
    /// Whether an existing file with this name is replaced. Otherwise the next name of `alternatives` is tried if the
    /// name is in use.
    public var canReplace: Bool
    /// Returns the name for the n-th further attempt, where n begins at 1; `nil` ends the search.
    public var alternatives: @Sendable (Int) -> PublishedName?
    /// Returns the final response, which is saved before the file appears. The arguments are whether the name is new,
    /// and the name that was chosen.
    public var response: @Sendable (_ created: Bool, _ name: PublishedName) -> Response
    /// Completes the response with the validators of the new file, which are known only once the file is published.
    public var validated: @Sendable (Response, PublishedFile.Attributes) -> Response
    /// The final response if, after an interruption, the publication turns out to be impossible.
    public var refused: Response

    /// Creates a publication under `name`. The parameters are described at the properties.
    public init(
        name: PublishedName,
        fields: Fields = [:],
        canReplace: Bool = true,
        alternatives: @escaping @Sendable (Int) -> PublishedName? = { _ in nil },
        condition: @escaping @Sendable (PublishedFile.Attributes?) -> Response? = { _ in nil },
        refused: Response = Response(status: 409),
        validated: @escaping @Sendable (Response, PublishedFile.Attributes) -> Response = { response, _ in
            response
        },
        response: @escaping @Sendable (_ created: Bool, _ name: PublishedName) -> Response
    ) {
        self.name = name
        self.fields = fields
        self.condition = condition
        self.canReplace = canReplace
        self.alternatives = alternatives
        self.response = response
        self.validated = validated
        self.refused = refused
    }
}

/// A publication that has been decided: recovery completes it, or stores the response `refused`, without evaluating the
/// condition again.
package struct PublicationIntent: Sendable, Hashable {
    package var name: PublishedName
    /// The entity tag of the file that had this name when the publication was decided; `nil` if there was no file, and
    /// then no file may be replaced.
    package var replaced: String?
    /// The identity of the bytes, which does not change with their name.
    package var identity: String
    /// The representation metadata that is served with the file.
    package var fields: Fields = [:]
    package var response: Response
    package var refused: Response

    /// Returns whether this file is the file for which the condition was evaluated.
    ///
    /// - Parameter isPossiblyMoved: whether the file may have been renamed since. Renaming changes the last two parts of
    ///   the tag, which contain the time of the last change of attributes.
    func replaces(_ file: PublishedFile.Attributes, isPossiblyMoved: Bool) -> Bool {
        guard isPossiblyMoved, let replaced else { return file.entityTag.opaque == replaced }
        return file.entityTag.opaque.split(separator: "-").dropLast(2) == replaced.split(separator: "-").dropLast(2)
    }
}

/// The record of a published file: the principal whose quota contains it, and its representation metadata.
package struct FileRecord: Sendable, Hashable {
    package var name: String
    package var principal: String
    /// The size in bytes.
    package var size: Int64
    /// The exact time of the publication. No two publications have the same time. Together with the size the time
    /// identifies the published file, even in a copy of the data directory.
    package var identity: String
    /// The modification time, in seconds since 1970.
    package var modifiedSeconds: Int64
    /// Representation metadata, such as Content-Type.
    package var fields: Fields

    package init(
        name: String, principal: String, size: Int64, identity: String = "", modifiedSeconds: Int64 = 0,
        fields: Fields = [:]
    ) {
        self.name = name
        self.principal = principal
        self.size = size
        self.identity = identity
        self.modifiedSeconds = modifiedSeconds
        self.fields = fields
    }

    /// The record of a publication.
    init(_ intent: PublicationIntent, principal: String, attributes: PublishedFile.Attributes) {
        self.init(
            name: intent.name.path, principal: principal, size: attributes.size, identity: attributes.publicationTime,
            modifiedSeconds: attributes.modifiedSeconds, fields: intent.fields)
    }

    /// Returns whether the record belongs to this file.
    func describes(_ file: PublishedBlob) -> Bool { describes(file, ofSize: size) }

    /// Returns whether the record would belong to this file if the recorded size were `size`.
    func describes(_ file: PublishedBlob, ofSize size: Int64) -> Bool {
        identity == file.file.attributes.publicationTime && size == file.file.attributes.size
            && modifiedSeconds == file.file.attributes.modifiedSeconds
    }
}

extension PublishedFile.Attributes {
    /// The identity of the publication in ``FileRecord/identity``.
    var publicationTime: String { "\(modifiedSeconds).\(modifiedNanoseconds)" }
}
