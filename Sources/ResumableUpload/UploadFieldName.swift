/// Names of the fields and of the media type that the draft defines (sections 4.1 and 6, and appendix B).
package enum UploadFieldName {
    package static let offset = "Upload-Offset"
    package static let complete = "Upload-Complete"
    /// Interop version 3 alone: the inverse of `complete`.
    package static let incomplete = "Upload-Incomplete"
    package static let length = "Upload-Length"
    package static let limit = "Upload-Limit"
    package static let interopVersion = "Upload-Draft-Interop-Version"

    /// Every request field of the protocol, for browsers' preflight requests.
    package static let requestFields = [offset, complete, incomplete, length, interopVersion]
    /// Every response field of the protocol, to be exposed to browsers.
    package static let responseFields = [offset, complete, incomplete, length, limit, interopVersion]
}

/// The media type of an append's content (draft section 6).
package let partialUploadMediaType = "application/partial-upload"
