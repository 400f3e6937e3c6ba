import HTTPSemantics

/// Why an upload does not go on for now.
package enum UploadInterruption: Sendable, Hashable {
    /// The server could not be reached: nothing of the request has arrived.
    case unreachable
    /// The connection was lost.
    case connection
    /// Nothing moved for too long.
    case stall
    /// The other side cannot be trusted or understood. Another try would end the same way and is not made.
    case unusableConnection
    /// A response that another try may change.
    case status(Status)
    /// The server refused the offset that it had told, or did not move it.
    case offsetConflict
    /// The upload's lifetime passed before it was complete.
    case expiry
}

extension UploadInterruption {
    /// Whether the server said that it cannot serve the request now.
    var isRefusal: Bool {
        if case .status = self { true } else { false }
    }
}
