import HTTPSemantics

/// Why an upload ended without the target's answer.
package enum UploadFailure: Error, Sendable, Hashable {
    /// A final response that promises nothing for another try.
    case refused(Status)
    /// 401, 403 or 407
    case unauthorized(Status)
    /// The upload resource is not known any more.
    case gone(Status)
    /// The upload's lifetime had passed before anything was sent.
    case expired
    /// More bytes than the server takes; `limit` is the largest size of a representation, where it told that.
    case tooLarge(limit: Int64?)
    /// The server told a smaller offset than before, against its promise (draft section 4.1.1).
    case offsetLost(acknowledged: Int64, reported: Int64)
    /// An offset beyond the length of the representation.
    case offsetImpossible(Int64)
    /// A successful retrieval without a usable offset.
    case offsetUnknown(Status)
    /// Two upload resources for one upload (draft section 4.2.2).
    case locationChanged
    case locationUnusable(ResolvedLocation.Relation)
    /// The server says that bytes arrived other than they were digested.
    case digestMismatch
    case sourceUnavailable(at: Int64)
    /// The server knows another length of the representation.
    case sourceChanged
    /// The target answered before it had everything, and its answer is lost.
    case answerLost
    /// As many tries without progress as the policy allows.
    case exhausted(lastReason: UploadInterruption)
    /// An interruption before the server had told an upload resource, of a request that must not be repeated.
    case notResumable(UploadInterruption)
    /// The server took a request that was not to complete the upload, and told no upload resource: it does not support
    /// resumable uploads, and may have taken what it got for everything.
    case resumptionUnsupported(Status)
    case redirectLoop
    case cancelled
}
