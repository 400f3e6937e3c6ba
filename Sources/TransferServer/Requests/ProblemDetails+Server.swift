import HTTPSemantics
import UploadStorage

/// Problems that belong neither to the upload protocol nor to a target.
extension ProblemDetails {
    /// - Parameter hasFiles: whether the server has files below `/files/` and uploads below `/uploads/`. The text
    ///   discloses no other prefixes.
    static func notFound(hasFiles: Bool) -> ProblemDetails {
        ProblemDetails(
            status: 404,
            detail: "The resource does not exist."
                + (hasFiles ? " Files are below /files/, uploads below /uploads/." : ""),
            code: "not-found")
    }
    static let methodNotAllowed = ProblemDetails(
        status: 405, detail: "The resource does not support this method; see Allow.", code: "method-not-allowed")
    static let unsupportedExpectation = ProblemDetails(
        status: 417, detail: "The only supported expectation is 100-continue.", code: "unsupported-expectation")
    static let malformedTarget = ProblemDetails(FramingRefusal.malformedTarget)
    static let preconditionFailed = ProblemDetails(
        status: 412, detail: "The conditions of the request do not match the current file.",
        code: "precondition-failed")
    static let missingLength = ProblemDetails(
        status: 411, detail: "Content over HTTP/1.0 needs Content-Length; an empty file has Content-Length: 0.",
        code: "length-required")
    static let partialContent = ProblemDetails(
        status: 400,
        detail:
            "PUT with Content-Range is not supported. Send the complete file with PUT, or resume an upload with PATCH.",
        code: "partial-content")
    static let tusProtocol = ProblemDetails(
        status: 412,
        detail: "This server supports the IETF draft Resumable Uploads for HTTP, not tus 1.0. "
            + "In tus-js-client set the option 'protocol' to 'ietf-draft-05'.",
        code: "tus-not-supported")
    static let targetFailed = ProblemDetails(
        status: 500,
        detail:
            "The server received the complete upload, but failed to process it. It does not process this upload again.",
        code: "target-failed")
    /// - Parameter status: 503, or 423 in the response to a retrieval.
    static func targetUnavailable(_ status: Status) -> ProblemDetails {
        ProblemDetails(
            status: status,
            detail: "The server received the complete upload, but cannot process it now. Repeat the request later.",
            code: "target-unavailable")
    }
    static let contentFailed = ProblemDetails(
        status: 500, detail: "The server failed to produce the content of the response. Repeat the request later.",
        code: "content-failed")
    static let stillProcessing = ProblemDetails(
        status: 503, detail: "The upload is complete, but the server still processes it. Repeat the request later.",
        code: "upload-processing")

    /// The server is not ready for new uploads. Each reason is a stable code.
    static func notReady(_ reasons: [String]) -> ProblemDetails {
        ProblemDetails(
            status: 503, detail: "The server is not ready: \(reasons.joined(separator: ", ")).", code: "not-ready",
            members: [("reasons", .strings(reasons))])
    }

    init(_ refusal: FramingRefusal) {
        self.init(status: refusal.status, detail: refusal.detail, code: refusal.code)
    }

    /// The problem of a failure of the store.
    init(_ error: StoreError) {
        let (status, detail): (Status, String) =
            switch error {
            case .notFound: (404, "The resource does not exist.")
            case .tooManyUploads(let limit):
                (429, "At most \(limit) unfinished uploads are allowed. Finish or cancel one.")
            case .quotaExceeded(let limit): (507, "The quota of \(limit) bytes would be exceeded.")
            case .insufficientSpace: (507, "The server does not have enough free space. Try again later.")
            case .targetIsDirectory: (409, "The target is a directory. Add the name of a file to the path.")
            case .targetIsSpecial: (409, "The name is in use, but not by a file or directory. Choose another name.")
            case .parentIsFile: (409, "A directory in the path cannot be used, because its name belongs to a file.")
            case .preconditionFailed: (412, "The conditions of the request do not match the current file.")
            case .pathTooLong(let limit): (414, "The path is invalid: it has more than \(limit) bytes.")
            case .noFreeName: (409, "No free name was found for the file.")
            case .processing: (503, "The server still processes the upload. Repeat the request later.")
            case .unavailable: (503, "The storage of the server cannot be reached now. Acknowledged bytes are kept.")
            case .heldElsewhere: (503, "Another server still uses the upload. Repeat the request later.")
            case .stateLost: (500, "Acknowledged bytes of the upload are missing. Start a new upload.")
            default: (500, "The server could not store or read the data. Acknowledged bytes are kept.")
            }
        self.init(status: status, detail: detail, code: error.code)
    }
}

extension ProblemDetails {
    /// The problem of an invalid path.
    init(_ refusal: PathSegments.Refusal) {
        let reason: String =
            switch refusal {
            case .notAbsolute: "it does not begin with a slash."
            case .illegalCharacter: "it has a character that URLs must percent-encode."
            case .malformedEscape: "a percent sign is not followed by two hexadecimal digits."
            case .nul, .controlCharacter: "it has a control character."
            case .encodedSlash, .backslash: "a name must not contain a slash or backslash."
            case .dotSegment: "it has a \".\" or \"..\" segment."
            case .emptySegment: "it has two slashes in a row."
            case .segmentTooLong: "a name has more than \(PathSegments.maxSegmentLength) bytes."
            case .pathTooLong: "it has more than \(PathSegments.maxPathLength) bytes."
            case .pathTooDeep: "it has more than \(PathSegments.maxDepth) segments."
            case .invalidUTF8: "it is not UTF-8."
            }
        self.init(
            status: refusal == .pathTooLong ? 414 : 400, detail: "The path is invalid: " + reason,
            code: refusal.rawValue)
    }
}
