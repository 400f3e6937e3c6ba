import HTTPSemantics
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

    init(attributes: Attributes, fields: Fields = [:], content: any PublishedContent) {
        self.attributes = attributes
        self.fields = fields
        self.content = content
    }

    func described(by fields: Fields) -> PublishedFile {
        PublishedFile(attributes: attributes, fields: fields, content: content)
    }

    /// Reads bytes from the offset on and returns their number, which is smaller than the buffer only at the end.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StoreError) -> Int {
        try translating("read a published file") { () throws(Errno) in try content.read(into: buffer, at: offset) }
    }

    /// A descriptor of the file for calls that copy bytes inside the kernel; nil if the bytes are not in a local file.
    /// The caller owns and closes it.
    package func duplicateForHandover() throws(StoreError) -> Int32? {
        try translating("duplicate a descriptor") { () throws(Errno) in try content.duplicateForHandover() }
    }
}
