import HTTPSemantics

/// The next step of an upload or a download on the client.
package enum ClientStep<Outcome: Sendable>: Sendable {
    /// Send this request, and report its interim responses and then its result.
    case send(ClientRequest)
    /// Wait for this duration because of the interruption, then call `next` again.
    case wait(Duration, ClientInterruption)
    /// Get new credentials, because the server did not accept those of the last request (401). Then call
    /// `credentialsRefreshed(isFresh:)`, and `next` again.
    case refreshCredentials
    /// Everything is sent or received.
    case finished(Outcome)
    case failed(ClientFailure)
}

/// What to do after an interim response.
package enum InterimReaction: Sendable, Hashable {
    case proceed
    /// Send the content that waits for the announcement.
    case openGate
    /// Abort the request and report it as interrupted.
    case abort
}

/// The result of a complete upload.
package struct UploadOutcome: Sendable, Hashable {
    /// The response of the target, with any status; if it is lost, the last response to a retrieval.
    package var response: ClientResponseHead
    package var isResponseLost: Bool

    package init(response: ClientResponseHead, isResponseLost: Bool) {
        self.response = response
        self.isResponseLost = isResponseLost
    }
}
