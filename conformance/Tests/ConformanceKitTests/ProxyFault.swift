/// A fault of ``FaultyProxy``.
enum ProxyFault: String, CaseIterable, Sendable {
    case buffersBodies
    case buffersChunkedBodies
    case holdsBack
    case dropsInterim
    case passesFirstInterim
    case limitsInterim
    case delaysInterim
    case treatsInterimAsFinal
    case failsOnInterim
    case changesAnnouncedLocation
    case hidesAbort
    case endsChunksCleanly
    case delaysAnswers
    case losesAnswers
    case limitsBodies
    case answersExpectation
    case losesExpectation
    case losesContinue
    case losesRange
    case changesPartialContent
    case losesUploadFields
    case losesResponseFields
    case losesLocation
    case hidesHost
    case refusesPatch
    case limitsHeads
    case usesOldHTTP

    /// Whether the fault is that a message is missing, which only a timeout can detect.
    var isFoundByWaiting: Bool {
        switch self {
        case .buffersBodies, .buffersChunkedBodies, .holdsBack, .dropsInterim, .passesFirstInterim, .limitsInterim,
            .delaysInterim, .hidesAbort, .delaysAnswers, .losesAnswers, .losesContinue, .limitsBodies, .limitsHeads,
            .refusesPatch:
            true
        default: false
        }
    }

    /// The check that has to detect the fault, its grade, and parts of its answer and of the recommended setting.
    var detectedBy: (id: String, grade: String, answer: String, setting: String) {
        switch self {
        case .buffersBodies: ("body", "bad", "buffered", "disable request buffering")
        case .buffersChunkedBodies: ("body-chunked", "poor", "buffered", "configure clients to send Content-Length")
        case .holdsBack: ("abort", "poor", "50000 of 100000 bytes are lost", "send them again")
        case .dropsInterim: ("interim", "poor", "dropped", "none is forwarded")
        case .passesFirstInterim: ("interim", "poor", "only the first", "clients get no progress")
        case .limitsInterim: ("interim", "poor", "the first 5 are forwarded", "no more than 5")
        case .delaysInterim: ("interim", "poor", "only with the final response", "too late")
        case .treatsInterimAsFinal: ("interim", "bad", "handled as the final", "Onward-Interim: off")
        case .failsOnInterim: ("interim", "bad", "503", "Onward-Interim: off")
        case .changesAnnouncedLocation: ("interim", "bad", "Location of a 104 is changed to", "Location of 104")
        case .hidesAbort: ("abort", "poor", "does not detect it", "idle timeout")
        case .endsChunksCleanly: ("abort-chunked", "bad", "as if it were complete", "--require-length")
        case .delaysAnswers: ("early-answer", "poor", "after the body", "--max-append-size")
        case .losesAnswers: ("early-answer", "poor", "502", "--max-append-size")
        case .limitsBodies:
            ("body-limit", "poor", "1048576 bytes are forwarded, 1048577 get 413", "max-append-size=1048576")
        case .answersExpectation: ("expect", "neutral", "the proxy answers it", "")
        case .losesExpectation: ("expect", "poor", "no 100 is sent", "")
        case .losesContinue: ("expect", "poor", "100 of the server is lost", "")
        case .losesRange: ("range", "poor", "lost: Range, If-Range", "downloads restart")
        case .changesPartialContent: ("range", "poor", "206 arrived as 200", "downloads restart")
        case .losesUploadFields: ("request-fields", "bad", "Upload-Offset", "Upload-Offset")
        case .losesResponseFields: ("response-fields", "bad", "Upload-Limit", "Upload-Limit")
        case .losesLocation: ("response-fields", "bad", "Location is lost", "Location")
        case .hidesHost: ("request-fields", "poor", "Host changed to upstream.example", "--public-url")
        case .refusesPatch: ("methods", "bad", "PATCH", "refuses PATCH")
        case .limitsHeads: ("large-head", "poor", "fields of 4 kB are refused", "")
        case .usesOldHTTP: ("reach", "poor", "HTTP/1.0", "proxy_http_version")
        }
    }
}
