/// What a request has to know of an upload, free of any version and of any storage.
package struct UploadState: Sendable, Hashable {
    package enum Phase: Sendable, Hashable {
        /// Waits for content or for the request that completes it.
        case receiving
        /// Everything is here, and the target resource works on it.
        case processing
        /// The target resource has answered.
        case complete(FinalResponse)
    }

    /// Bytes of the representation that are in place and durable.
    package var offset: Int64
    /// Length of the whole representation in bytes, once a request told it.
    package var length: Int64?
    package var phase: Phase
    /// Limits of this upload, `maxAge` being what is left.
    package var limits: UploadLimits

    package init(offset: Int64, length: Int64? = nil, phase: Phase = .receiving, limits: UploadLimits = UploadLimits())
    {
        self.offset = offset
        self.length = length
        self.phase = phase
        self.limits = limits
    }

    /// Whether a final response has been produced, which is what `Upload-Complete` states (draft section 4.1.2).
    package var isComplete: Bool {
        if case .complete = phase { true } else { false }
    }
}
