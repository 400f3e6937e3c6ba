import HTTPSemantics

/// The state of an upload with which requests are evaluated. It does not depend on the version of the protocol or on
/// the storage.
package struct UploadState: Sendable, Hashable {
    package enum Phase: Sendable, Hashable {
        /// The upload waits for content or for the request that completes it.
        case receiving
        /// All content was received, and the target resource processes it.
        case processing
        /// The target resource has responded.
        case complete(Response)
    }

    /// The number of durable bytes of the representation.
    package var offset: Int64
    /// The length of the complete representation in bytes; `nil` until a request determines it.
    package var length: Int64?
    package var phase: Phase
    /// The limits of this upload; `maxAge` is the remaining lifetime in seconds.
    package var limits: UploadLimits

    package init(offset: Int64, length: Int64? = nil, phase: Phase = .receiving, limits: UploadLimits = UploadLimits())
    {
        self.offset = offset
        self.length = length
        self.phase = phase
        self.limits = limits
    }

    /// Whether the target has sent its final response, as `Upload-Complete` reports it (draft section 4.1.2).
    package var isComplete: Bool {
        if case .complete = phase { true } else { false }
    }
}
