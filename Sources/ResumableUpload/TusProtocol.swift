import HTTPSemantics

/// The older protocol tus 1.0, which shares the names of some fields with the draft and means something else by them.
///
/// It is only recognized here, so that its clients can be told apart from clients of the draft.
package enum TusProtocol {
    /// Every request of a tus 1.0 client carries it, but `OPTIONS`.
    package static let versionField = "Tus-Resumable"
    /// Names partial uploads and their concatenation; the draft has neither.
    package static let concatenationField = "Upload-Concat"
    /// Name, media type and other properties of the file.
    package static let metadataField = "Upload-Metadata"

    /// Fields that only the draft has. `Upload-Length` and `Upload-Offset` are fields of both protocols.
    private static let draftFields = [
        UploadFieldName.interopVersion, UploadFieldName.complete, UploadFieldName.incomplete,
    ]

    /// Whether a request speaks tus 1.0. One that has a field of the draft alone speaks the draft: `Tus-Resumable`
    /// means nothing there.
    package static func isUsed(by fields: Fields) -> Bool {
        fields.contains(versionField) && !draftFields.contains(where: fields.contains)
    }
}
