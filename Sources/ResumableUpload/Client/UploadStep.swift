/// What the client's side of an upload wants next.
package enum UploadStep: Sendable, Hashable {
    /// Send this, report its interim responses, and then how it ended.
    case send(ClientRequest)
    /// Wait this long for this reason, then ask again.
    case wait(Duration, UploadInterruption)
    /// The upload is over: the target answered, or its answer is lost.
    case finished(UploadOutcome)
    /// The upload is over; the resumption says whether another run can go on with it.
    case failed(UploadFailure)
}

/// What follows from an interim response.
package enum InterimReaction: Sendable, Hashable {
    case proceed
    /// Content that is held back may go.
    case openGate
    /// End the request now and report it as interrupted.
    case abort
}

/// How an upload ended of which the server has everything that it wants.
package struct UploadOutcome: Sendable, Hashable {
    /// The target's answer, whatever its status says; or where that is lost, the last answer to a retrieval.
    package var response: UploadResponseHead?
    package var isResponseLost: Bool

    package init(response: UploadResponseHead?, isResponseLost: Bool) {
        self.response = response
        self.isResponseLost = isResponseLost
    }
}
