/// Names of the fields and of the media type that the draft defines (sections 4.1 and 6, and appendix B).
public enum UploadFieldName {
    public static let offset = "Upload-Offset"
    public static let complete = "Upload-Complete"
    /// Interop version 3 alone: the inverse of `complete`.
    public static let incomplete = "Upload-Incomplete"
    public static let length = "Upload-Length"
    public static let limit = "Upload-Limit"
    public static let interopVersion = "Upload-Draft-Interop-Version"

    /// Every request field of the protocol, for browsers' preflight requests.
    public static let requestFields = [offset, complete, incomplete, length, interopVersion]
    /// Every response field of the protocol, to be exposed to browsers.
    public static let responseFields = [offset, complete, incomplete, length, limit, interopVersion]
}

/// The media type of an append's content (draft section 6).
public let partialUploadMediaType = "application/partial-upload"
