/// A single way in which the test's proxy can misbehave.
enum ProxyFault: String, CaseIterable, Sendable {
    case buffersBodies
    case buffersChunkedBodies
    case holdsBack
    case dropsInterim
    case passesFirstInterim
    case limitsInterim
    case delaysInterim
    case takesInterimForFinal
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
    case speaksOldHTTP

    /// Whether something does not come, which takes a timeout to find out.
    var isFoundByWaiting: Bool {
        switch self {
        case .buffersBodies, .buffersChunkedBodies, .holdsBack, .dropsInterim, .passesFirstInterim, .limitsInterim,
            .delaysInterim, .hidesAbort, .delaysAnswers, .losesAnswers, .losesContinue, .limitsBodies, .limitsHeads,
            .refusesPatch:
            true
        default: false
        }
    }

    /// The question that has to notice, how badly it grades it, and what it says or advises.
    var caughtBy: (id: String, grade: String, answer: String, setting: String) {
        switch self {
        case .buffersBodies: ("body", "bad", "held back", "switch request buffering off")
        case .buffersChunkedBodies: ("body-chunked", "poor", "held back", "let clients state Content-Length")
        case .holdsBack: ("abort", "poor", "50000 of 100000 bytes are lost", "sent again")
        case .dropsInterim: ("interim", "poor", "dropped", "none passes")
        case .passesFirstInterim: ("interim", "poor", "only the first", "progress does not")
        case .limitsInterim: ("interim", "poor", "the first 5 pass", "no more than 5")
        case .delaysInterim: ("interim", "poor", "only with the final response", "too late")
        case .takesInterimForFinal: ("interim", "bad", "taken for the final", "Onward-Interim: off")
        case .failsOnInterim: ("interim", "bad", "503", "Onward-Interim: off")
        case .changesAnnouncedLocation: ("interim", "bad", "Location of a 104 becomes", "Location of 104")
        case .hidesAbort: ("abort", "poor", "not seen", "idle time-out")
        case .endsChunksCleanly: ("abort-chunked", "bad", "as if it were whole", "--require-length")
        case .delaysAnswers: ("early-answer", "poor", "behind the body", "--max-append-size")
        case .losesAnswers: ("early-answer", "poor", "502", "--max-append-size")
        case .limitsBodies: ("body-limit", "poor", "1048576 bytes pass, 1048577 end in 413", "max-append-size=1048576")
        case .answersExpectation: ("expect", "neutral", "the proxy answers it", "")
        case .losesExpectation: ("expect", "poor", "nobody answers", "")
        case .losesContinue: ("expect", "poor", "100 is lost", "")
        case .losesRange: ("range", "poor", "lost: Range, If-Range", "downloads begin anew")
        case .changesPartialContent: ("range", "poor", "206 came as 200", "downloads begin anew")
        case .losesUploadFields: ("request-fields", "bad", "Upload-Offset", "Upload-Offset")
        case .losesResponseFields: ("response-fields", "bad", "Upload-Limit", "Upload-Limit")
        case .losesLocation: ("response-fields", "bad", "Location is lost", "Location")
        case .hidesHost: ("request-fields", "poor", "Host becomes upstream.example", "--public-url")
        case .refusesPatch: ("methods", "bad", "PATCH", "refuses PATCH")
        case .limitsHeads: ("large-head", "poor", "not even", "")
        case .speaksOldHTTP: ("reach", "poor", "HTTP/1.0", "proxy_http_version")
        }
    }
}
