import HTTPSemantics

/// The reason why the upload protocol rejects a request. ``code`` is the stable code in problem documents, log lines
/// and metrics.
package enum UploadError: Error, Sendable, Hashable {
    case mismatchingOffset(expected: Int64, provided: Int64)
    case inconsistentLength(detail: String)
    case lengthExceeded(length: Int64)
    case completed
    case notFound
    case deactivated(reason: String)
    case missingOffset
    case missingCompleteness
    case unsupportedMediaType
    case contentCodingOnAppend
    case uploadTooLarge(limit: Int64)
    case appendTooLarge(limit: Int64)
    case appendTooSmall(limit: Int64)
    case stateFieldsOnRetrieval
    case methodNotAllowed
    case digestMismatch(field: String, algorithm: String)
    /// Only the end of the content would determine the length of the representation, and the server requires a declared
    /// length.
    case lengthRequired
    /// The request is for parallel uploads that are concatenated, which the draft does not have.
    case concatenation

    package var code: String {
        switch self {
        case .mismatchingOffset: "mismatching-upload-offset"
        case .inconsistentLength: "inconsistent-upload-length"
        case .lengthExceeded: "upload-length-exceeded"
        case .completed: "completed-upload"
        case .notFound: "upload-not-found"
        case .deactivated: "upload-deactivated"
        case .missingOffset: "missing-upload-offset"
        case .missingCompleteness: "missing-upload-complete"
        case .unsupportedMediaType: "unsupported-media-type"
        case .contentCodingOnAppend: "content-coding-on-append"
        case .uploadTooLarge: "upload-too-large"
        case .appendTooLarge: "append-too-large"
        case .appendTooSmall: "append-too-small"
        case .stateFieldsOnRetrieval: "upload-fields-not-allowed"
        case .methodNotAllowed: "method-not-allowed"
        case .digestMismatch: "digest-mismatch"
        case .lengthRequired: "length-required"
        case .concatenation: "concatenation-not-supported"
        }
    }

    /// The status in `dialect`.
    package func status(in dialect: Dialect) -> Status {
        switch self {
        case .mismatchingOffset: 409
        case .inconsistentLength, .lengthExceeded, .completed, .missingOffset, .missingCompleteness, .appendTooSmall,
            .stateFieldsOnRetrieval, .digestMismatch, .concatenation:
            400
        case .notFound: 404
        case .deactivated: dialect.deactivatedStatus
        case .unsupportedMediaType, .contentCodingOnAppend: 415
        case .uploadTooLarge, .appendTooLarge: 413
        case .methodNotAllowed: 405
        case .lengthRequired: 411
        }
    }

    /// Whether the upload cannot be continued. Its offset is then not reported.
    package var isEndOfUpload: Bool {
        switch self {
        case .notFound, .deactivated, .lengthExceeded: true
        default: false
        }
    }

    /// A sentence for people: what was wrong and what to do.
    package var detail: String {
        switch self {
        case .mismatchingOffset(let expected, let provided):
            "The upload is at offset \(expected), but the request starts at \(provided). Continue at \(expected)."
        case .inconsistentLength(let detail): detail
        case .lengthExceeded(let length):
            "The content exceeds the upload's length of \(length) bytes. The upload is invalid; start a new one."
        case .completed: "The upload is complete and accepts no more content."
        case .notFound: "There is no such upload. It may have expired or been canceled."
        case .deactivated(let reason): "The upload can no longer be used: \(reason). Start a new one."
        case .missingOffset: "An append needs the field Upload-Offset once, with a non-negative Integer (RFC 9651)."
        case .missingCompleteness:
            "An append needs the field \(UploadFieldName.completeInEveryVersion) once, with ?0 or ?1."
        case .unsupportedMediaType: "An append needs Content-Type: \(partialUploadMediaType)."
        case .contentCodingOnAppend:
            "An append must not have Content-Encoding. Only the request that creates the upload can have it."
        case .uploadTooLarge(let limit): "The complete upload can have at most \(limit) bytes."
        case .appendTooLarge(let limit):
            "The content of one request can have at most \(limit) bytes. Send smaller parts."
        case .appendTooSmall(let limit):
            "The content of a request that does not complete the upload must have at least \(limit) bytes."
        case .stateFieldsOnRetrieval:
            "This request must not have Upload-Offset, Upload-Complete, Upload-Incomplete or Upload-Length."
        case .methodNotAllowed: "An upload resource supports HEAD, GET, PATCH, DELETE and OPTIONS."
        case .digestMismatch(let field, let algorithm):
            "The \(algorithm) digest of the received bytes differs from that in \(field)."
        case .lengthRequired:
            "Declare the length with Content-Length or Upload-Length. Or send parts with Upload-Complete: ?0, and complete the upload with an empty append."
        case .concatenation:
            "Upload-Concat is not part of this protocol. Send the file as one upload: in tus-js-client set parallelUploads to 1."
        }
    }

    /// The problem document (RFC 9457) in `dialect`, with the type of the draft if it has one (draft section 7).
    package func problem(in dialect: Dialect) -> ProblemDetails {
        let registry = "https://iana.org/assignments/http-problem-types#"
        var problem = ProblemDetails(status: status(in: dialect), detail: detail, code: code)
        switch self {
        case .mismatchingOffset(let expected, let provided):
            problem.type = registry + "mismatching-upload-offset"
            problem.title = "Mismatching Upload Offset"
            problem.members = [("expected-offset", .integer(expected)), ("provided-offset", .integer(provided))]
        case .inconsistentLength:
            problem.type = registry + "inconsistent-upload-length"
            problem.title = "Inconsistent Upload Length"
        case .completed where dialect.hasCompletedUploadProblem:
            problem.type = registry + "completed-upload"
            problem.title = "Upload Is Completed"
        default: break
        }
        return problem
    }
}
