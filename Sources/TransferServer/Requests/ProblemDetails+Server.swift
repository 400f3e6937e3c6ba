import HTTPSemantics
import UploadStorage

/// Problems that belong neither to the upload protocol nor to a target.
extension ProblemDetails {
    static let notFound = ProblemDetails(
        status: 404, detail: "Nothing is here. Files are below /files/, uploads below /uploads/.", code: "not-found")
    static let methodNotAllowed = ProblemDetails(
        status: 405, detail: "The resource does not know this method; see Allow.", code: "method-not-allowed")
    static let unsupportedExpectation = ProblemDetails(
        status: 417, detail: "The only expectation that is met is 100-continue.", code: "unsupported-expectation")
    static let malformedTarget = ProblemDetails(FramingRefusal.malformedTarget)
    static let preconditionFailed = ProblemDetails(
        status: 412, detail: "The file is not in the state that the request's conditions demand.",
        code: "precondition-failed")
    static let missingLength = ProblemDetails(
        status: 411, detail: "Content over HTTP/1.0 needs Content-Length; an empty file has Content-Length: 0.",
        code: "length-required")
    static let partialContent = ProblemDetails(
        status: 400, detail: "Content-Range makes the content a part; PUT takes whole files, resumed uploads PATCH.",
        code: "partial-content")
    static let tusProtocol = ProblemDetails(
        status: 412,
        detail: "This server speaks the IETF draft Resumable Uploads for HTTP, not tus 1.0. "
            + "In tus-js-client set the option protocol to 'ietf-draft-05'.",
        code: "tus-not-supported")
    static let targetFailed = ProblemDetails(
        status: 500, detail: "The target of the upload failed. The upload is complete and will not be tried again.",
        code: "target-failed")
    static let stillProcessing = ProblemDetails(
        status: 503, detail: "The upload is complete, but its target is still at work. Ask again.",
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
            case .notFound: (404, "There is no such thing here.")
            case .tooManyUploads(let limit):
                (429, "At most \(limit) unfinished uploads are allowed. Finish or cancel one.")
            case .quotaExceeded(let limit): (507, "The quota of \(limit) bytes would be exceeded.")
            case .insufficientSpace: (507, "The server has not enough free space. Try again later.")
            case .targetIsDirectory: (409, "The target is a directory. Name a file in it.")
            case .targetIsSpecial: (409, "The name is taken by something that is no file. Choose another one.")
            case .parentIsFile: (409, "A part of the target's path is a file.")
            case .preconditionFailed: (412, "The file is not in the state that the request's conditions demand.")
            case .noFreeName: (409, "No free name was found for the file.")
            case .processing: (503, "The upload's target is still at work. Ask again.")
            default: (500, "The server could not store or read the data. What was acknowledged is kept.")
            }
        self.init(status: status, detail: detail, code: error.code)
    }
}
