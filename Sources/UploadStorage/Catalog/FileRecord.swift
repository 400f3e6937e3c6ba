import HTTPSemantics

/// The record of a published file: the principal whose quota contains it, and its representation metadata.
package struct FileRecord: Sendable, Hashable {
    package var name: String
    package var principal: String
    /// The size in bytes.
    package var size: Int64
    /// The exact time of the publication. No two publications have the same time. Together with the size the time
    /// identifies the published file, also in a copy of the data directory.
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
    fileprivate var publicationTime: String { "\(modifiedSeconds).\(modifiedNanoseconds)" }
}
