import HTTPSemantics

/// Why an upload is interrupted.
package enum UploadInterruption: Sendable, Hashable {
    /// The server could not be reached, so nothing of the request has arrived.
    case unreachable
    /// The connection was lost.
    case connection
    /// No byte was sent or received for too long.
    case stall
    /// The server is not trusted or its messages are malformed. It is not retried, because the result would be the
    /// same.
    case unusableConnection
    /// A response that a retry may change.
    case status(Status)
    /// The server rejected the offset that it had reported, or did not change it.
    case offsetConflict
    /// The upload's lifetime passed before it was complete.
    case expiry
}

extension UploadInterruption {
    /// Whether the server reported that it cannot serve the request now.
    var isRefusal: Bool {
        if case .status = self { true } else { false }
    }
}
