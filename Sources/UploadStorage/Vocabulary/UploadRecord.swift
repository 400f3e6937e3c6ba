import HTTPSemantics
import ResumableUpload

/// The state of one upload at one moment.
package struct UploadRecord: Sendable, Hashable {
    package enum Phase: Sendable, Hashable {
        /// Waits for content or for the request that completes it.
        case receiving
        /// Fully received; the target resource works on it.
        case processing
        /// The target resource has answered.
        case complete(Response)
        /// Will never be usable again.
        case invalid(reason: String)
    }

    package var id: UploadID
    /// As it was saved at creation.
    package var upload: NewUpload
    /// Bytes that are in place and durable.
    package var offset: Int64
    /// Bytes of the complete representation, once a request has announced it.
    package var length: Int64?
    package var phase: Phase
    /// Seconds of ``UploadStore/time``.
    package var createdAt: Int64
    /// Seconds of ``UploadStore/time``; nil: does not expire.
    package var expiresAt: Int64?

    package init(
        id: UploadID, upload: NewUpload, offset: Int64, length: Int64?, phase: Phase, createdAt: Int64,
        expiresAt: Int64?
    ) {
        self.id = id
        self.upload = upload
        self.offset = offset
        self.length = length
        self.phase = phase
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }

    /// Whether its answer need not be remembered any more.
    func isForgotten(at now: Int64) -> Bool {
        switch phase {
        case .receiving, .processing: false
        case .complete, .invalid: expiresAt.map { $0 <= now } ?? false
        }
    }
}
