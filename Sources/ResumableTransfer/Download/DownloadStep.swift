import HTTPSemantics

/// The next step of a download.
enum DownloadStep: Sendable {
    case send(DownloadRequest)
    /// Wait, and ask again then.
    case wait(Duration, DownloadInterruption)
    /// All bytes were received; with the response that brought the last of them.
    case finished(DownloadResponseHead)
    case failed(DownloadFailure)
}

/// A request that the state machine of a download wants to have sent.
struct DownloadRequest: Sendable, Hashable {
    enum Resource: Sendable, Hashable {
        /// The URI of the caller.
        case target
        /// The absolute URI of a redirection.
        case other(String)
    }

    var resource: Resource
    /// The offset of the first requested byte; 0: everything, without Range.
    var start: Int64
    /// `Range` and `If-Range`, or nothing.
    var fields: Fields
    /// False: a redirection has led to another origin.
    var carriesCredentials: Bool
}

/// The end of the content of a response.
enum ContentEnding: Sendable, Hashable {
    /// At the end according to its framing.
    case complete
    case cut(DownloadInterruption)
    /// It was longer than its head said.
    case overrun
}

/// Why a download waits before the next attempt.
enum DownloadInterruption: Sendable, Hashable {
    /// The server could not be reached.
    case unreachable
    /// The connection was lost, or the content ended before its end.
    case connection
    /// No data was transferred for too long.
    case stall
    /// The other side cannot be trusted or understood. Another attempt would end the same way and is not made.
    case unusableConnection
    /// A response that another attempt may change.
    case status(Status)
    /// A response that is not a representation of the requested resource.
    case unexpected(Status)
    /// The response did not fit the bytes that are kept.
    case unfit
}

extension DownloadInterruption {
    /// Whether the server answered, so that it is not asked again at once.
    var isRefusal: Bool {
        switch self {
        case .status, .unexpected: true
        case .unreachable, .connection, .stall, .unusableConnection, .unfit: false
        }
    }

    init(_ failure: TransportFailure) {
        self =
            switch failure {
            case .proxy(let proxy) where proxy.isPermanent: .unusableConnection
            case .stalled, .proxy(.stalled): .stall
            case .resolve, .connect, .connectStalled, .proxy: .unreachable
            case .connectionLost, .cancelled, .sourceFailed, .sinkFailed: .connection
            default: .unusableConnection
            }
    }
}

/// The reason of a download that fails.
enum DownloadFailure: Error, Sendable, Hashable {
    /// A final status that another attempt would not change.
    case refused(Status)
    /// 401, 403 or 407.
    case unauthorized(Status)
    case tooManyRedirects
    /// A redirection from https to http.
    case insecureRedirect
    /// What the server sent cannot be understood.
    case violation(String)
    /// There were too many attempts without progress; the last one failed for this reason.
    case exhausted(lastReason: DownloadInterruption)
}
