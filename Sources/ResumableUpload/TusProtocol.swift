import HTTPSemantics

/// The older protocol tus 1.0, which has some field names in common with the draft, with other meanings.
///
/// It is only recognized here, to distinguish its clients from those of the draft.
package enum TusProtocol {
    /// The field that every request of a tus 1.0 client has, except `OPTIONS`.
    package static let versionField = "Tus-Resumable"
    /// The field for partial uploads and their concatenation, which the draft does not have.
    package static let concatenationField = "Upload-Concat"
    /// The field with the name, media type and other properties of the file.
    package static let metadataField = "Upload-Metadata"

    /// Fields that only the draft has. `Upload-Length` and `Upload-Offset` are fields of both protocols.
    private static let draftFields = [
        UploadFieldName.interopVersion, UploadFieldName.complete, UploadFieldName.incomplete,
    ]

    /// Whether a request uses tus 1.0. A request with a field that only the draft has uses the draft, even if it has
    /// `Tus-Resumable`.
    package static func isUsed(by fields: Fields) -> Bool {
        fields.contains(versionField) && !draftFields.contains(where: fields.contains)
    }
}
