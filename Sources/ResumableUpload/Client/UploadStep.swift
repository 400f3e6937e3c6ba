/// The next step of an upload on the client.
package enum UploadStep: Sendable, Hashable {
    /// Send this request, pass its interim responses, and then its result.
    case send(ClientRequest)
    /// Wait this long for this reason, then call `next` again.
    case wait(Duration, UploadInterruption)
    /// The upload is complete: the target responded, or its response is lost.
    case finished(UploadOutcome)
    /// The upload failed; `resumption` is not nil if another run can resume it.
    case failed(UploadFailure)
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
    package var response: UploadResponseHead?
    package var isResponseLost: Bool

    package init(response: UploadResponseHead?, isResponseLost: Bool) {
        self.response = response
        self.isResponseLost = isResponseLost
    }
}
