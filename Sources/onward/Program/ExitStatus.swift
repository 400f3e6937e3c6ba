import UploadStorage

/// The exit statuses of the commands. Their numbers are those of sysexits.h.
enum ExitStatus: Int32, Sendable {
    case done = 0
    /// The command line is wrong.
    case usage = 64
    /// The source has changed since its upload began.
    case sourceChanged = 65
    /// The source does not exist or cannot be opened, or the state does not exist.
    case noSource = 66
    /// The server rejects the request, cannot be used, or has lost acknowledged bytes. For `serve`: the address is in
    /// use.
    case unavailable = 69
    /// An internal error.
    case internalFailure = 70
    /// For `serve`: the system cannot provide something that the server needs, such as a thread.
    case systemRefusal = 71
    /// Local input or output failed. For `serve`: the data directory cannot be used.
    case inputOutput = 74
    /// A temporary failure: run the same command again to resume. For `serve`: another server uses the data directory.
    case tryAgain = 75
    /// The server or a proxy does not allow the transfer.
    case notAllowed = 77
}

extension ExitStatus {
    /// The status of a command that has failed with an error of a store.
    init(_ error: StoreError) {
        switch error {
        case .inUse, .unavailable: self = .tryAgain
        default: self = .inputOutput
        }
    }
}
