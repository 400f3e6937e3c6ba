import HTTPSemantics

/// Why an upload ended without a response of the target.
package enum UploadFailure: Error, Sendable, Hashable {
    /// A final response that a retry would not change.
    case refused(Status)
    /// 401, 403 or 407
    case unauthorized(Status)
    /// The upload resource does not exist any more.
    case gone(Status)
    /// The upload's lifetime had passed before anything was sent.
    case expired
    /// More bytes than the server accepts; `limit` is the maximum size of a representation, if the server reported it.
    case tooLarge(limit: Int64?)
    /// The server reported a smaller offset than before, which the protocol forbids (draft section 4.1.1).
    case offsetLost(acknowledged: Int64, reported: Int64)
    /// An offset beyond the length of the representation.
    case offsetImpossible(Int64)
    /// A successful retrieval without a usable offset.
    case offsetUnknown(Status)
    /// Two upload resources for one upload (draft section 4.2.2).
    case locationChanged
    case locationUnusable(ResolvedLocation.Relation)
    /// The server reports that the received bytes do not match their digest.
    case digestMismatch
    case sourceUnavailable(at: Int64)
    /// The server reports another length of the representation.
    case sourceChanged
    /// The target responded before it had received everything, and its response is lost.
    case answerLost
    /// The retries without progress reached the limit of the policy.
    case exhausted(lastReason: UploadInterruption)
    /// The request was interrupted before the server announced an upload resource, and must not be repeated.
    case notResumable(UploadInterruption)
    /// The server accepted a part of the upload and announced no upload resource. It does not support resumable
    /// uploads, and may have stored the part as the complete file.
    case resumptionUnsupported(Status)
    case redirectLoop
    case cancelled
}
