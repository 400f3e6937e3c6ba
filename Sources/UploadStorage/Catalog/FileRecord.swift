import HTTPSemantics

/// What is known of a published file beyond its bytes: who pays for it, and what its upload said of it.
package struct FileRecord: Sendable, Hashable {
    package var name: String
    package var principal: String
    /// Bytes.
    package var size: Int64
    /// The exact time of its publication, which no other has; with the size it shows whether the file is still the one that
    /// was published, also in a copy of the data directory.
    package var identity: String
    /// Seconds since 1970 of the last change.
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

    /// Whether it speaks of this file.
    func describes(_ file: PublishedBlob) -> Bool { describes(file, ofSize: size) }

    /// Whether it would if it had recorded this size.
    func describes(_ file: PublishedBlob, ofSize size: Int64) -> Bool {
        identity == file.file.attributes.publicationTime && size == file.file.attributes.size
            && modifiedSeconds == file.file.attributes.modifiedSeconds
    }
}

extension PublishedFile.Attributes {
    fileprivate var publicationTime: String { "\(modifiedSeconds).\(modifiedNanoseconds)" }
}
