/// Names of the fields and of the media type that the draft defines (sections 4.1 and 6, and appendix B).
package enum UploadFieldName {
    package static let offset = "Upload-Offset"
    package static let complete = "Upload-Complete"
    /// Only in interop version 3: the inverse of `complete`.
    package static let incomplete = "Upload-Incomplete"
    package static let length = "Upload-Length"
    package static let limit = "Upload-Limit"
    package static let interopVersion = "Upload-Draft-Interop-Version"

    /// All request fields of the protocol, for the preflight requests of browsers.
    package static let requestFields = [offset, complete, incomplete, length, interopVersion]
    /// All response fields of the protocol, which are exposed to browsers.
    package static let responseFields = [offset, complete, incomplete, length, limit, interopVersion]
}

/// The media type of an append's content (draft section 6).
package let partialUploadMediaType = "application/partial-upload"
