import HTTPSemantics

/// Why a download does not go on for now.
enum DownloadInterruption: Sendable, Hashable {
    /// The server could not be reached.
    case unreachable
    /// The connection was lost, or the content ended before its end.
    case connection
    /// Nothing moved for too long.
    case stall
    /// The other side cannot be trusted or understood. Another try would end the same way and is not made.
    case unusableConnection
    /// A response that another try may change.
    case status(Status)
    /// A response that is no representation of what was asked for.
    case unexpected(Status)
    /// What the server sent did not go with what was at hand.
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
