import HTTPSemantics

/// The reason why an attempt of a transfer ended without success. Usually another attempt follows.
package enum ClientInterruption: Sendable, Hashable {
    /// The server could not be reached, so nothing of the request has arrived.
    case unreachable
    /// The connection was lost.
    case connection
    /// No byte was sent or received for too long.
    case stall
    /// The server is not trusted or its messages are malformed. The request is not sent again, because the result would
    /// be the same.
    case unusableConnection
    /// A response with an error that may be temporary.
    case status(Status)

    // Uploads
    /// The server rejected the offset that it had reported itself, or did not advance the offset.
    case offsetConflict
    /// The lifetime of the upload passed before the upload was complete.
    case expiry

    // Downloads
    /// The content was shorter than the representation.
    case truncated
    /// A response that is not a representation of the requested resource.
    case unexpected(Status)
    /// The response does not continue the bytes that were received before.
    case inconsistent

    /// Whether the server rejected the request: with an error, or with a response that is not the requested resource. The
    /// delay before the retry then has a minimum (``RetryPolicy/delay(before:random:isRefused:)``).
    package var isRefusal: Bool {
        switch self {
        case .status, .unexpected: true
        case .unreachable, .connection, .stall, .unusableConnection, .offsetConflict, .expiry, .truncated,
            .inconsistent:
            false
        }
    }
}

/// The reason why a transfer ended without success.
package enum ClientFailure: Error, Sendable, Hashable {
    /// A final response that a retry would not change.
    case refused(Status)
    /// 401, 403 or 407
    case unauthorized(Status)
    case tooManyRedirects
    /// The retries without progress reached the limit of the policy, or `lastReason` is `unusableConnection`, after which
    /// the request is not sent again.
    case exhausted(lastReason: ClientInterruption)
    case canceled

    // Uploads
    /// The upload resource does not exist any more.
    case gone(Status)
    /// The upload resource does not exist any more, and its lifetime has passed by the local clock.
    case expired
    /// The upload has more bytes than the server accepts; `limit` is the maximum size of a representation, if the
    /// server reported it.
    case tooLarge(limit: Int64?)
    /// The server reported a smaller offset than before, which the protocol forbids (draft section 4.1.1).
    case offsetLost(acknowledged: Int64, reported: Int64)
    /// The server reported an offset beyond the length of the representation.
    case offsetImpossible(Int64)
    /// The response to a retrieval was successful but had no usable offset.
    case offsetUnknown(Status)
    /// The server reported two upload resources for one upload (draft section 4.2.2).
    case locationChanged
    case locationUnusable(ResolvedLocation.Relation)
    /// The server reports that the received bytes do not match their digest.
    case digestMismatch
    case sourceUnavailable(at: Int64)
    /// The server reports another length of the representation.
    case sourceChanged
    /// The target responded before it had received everything, and its response is lost.
    case answerLost
    /// The request was interrupted before the server announced an upload resource, and must not be repeated.
    case notResumable(ClientInterruption)
    /// The server accepted a part of the upload and announced no upload resource. It does not support resumable
    /// uploads, and may have stored the part as the complete file.
    case resumptionUnsupported(Status)

    // Downloads
    /// A redirection from https to http.
    case insecureRedirect
    /// The response is malformed.
    case violation(String)
}
