/// What a request has to know of an upload, free of any version and of any storage.
public struct UploadState: Sendable, Hashable {
    public enum Phase: Sendable, Hashable {
        /// Waits for content or for the request that completes it.
        case receiving
        /// Everything is here, and the target resource works on it.
        case processing
        /// The target resource has answered.
        case complete(FinalResponse)
    }

    /// Bytes of the representation that are in place and durable.
    public var offset: Int64
    /// Length of the whole representation in bytes, once a request told it.
    public var length: Int64?
    public var phase: Phase
    /// Limits of this upload, `maxAge` being what is left.
    public var limits: UploadLimits

    public init(offset: Int64, length: Int64? = nil, phase: Phase = .receiving, limits: UploadLimits = UploadLimits()) {
        self.offset = offset
        self.length = length
        self.phase = phase
        self.limits = limits
    }

    /// Whether a final response has been produced, which is what `Upload-Complete` states (draft section 4.1.2).
    public var isComplete: Bool {
        if case .complete = phase { true } else { false }
    }
}
