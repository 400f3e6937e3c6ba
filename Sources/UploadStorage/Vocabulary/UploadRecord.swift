import HTTPSemantics
import ResumableUpload

/// The state of one upload at one moment.
package struct UploadRecord: Sendable, Hashable {
    package enum Phase: Sendable, Hashable {
        /// The upload waits for content or for the request that completes it.
        case receiving
        /// All content is received, and the target resource processes it.
        case processing
        /// The target resource has responded.
        case complete(Response)
        /// The upload is permanently unusable.
        case invalid(reason: String)
    }

    package var id: UploadID
    /// The properties that were saved at creation.
    package var upload: NewUpload
    /// The number of bytes that are stored durably.
    package var offset: Int64
    /// The length of the complete representation in bytes, once a request has announced it.
    package var length: Int64?
    package var phase: Phase
    /// The time of creation, in seconds of ``UploadStore/time``.
    package var createdAt: Int64
    /// The time of expiry, in seconds of ``UploadStore/time``; nil if the upload does not expire.
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

    /// Returns whether the upload has ended and its final response is no longer kept.
    func isNoLongerKept(at now: Int64) -> Bool {
        switch phase {
        case .receiving, .processing: false
        case .complete, .invalid: expiresAt.map { $0 <= now } ?? false
        }
    }
}
