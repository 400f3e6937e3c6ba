import HTTPSemantics

/// What happens to a transfer, in order. `completed` or `failed` is the last one.
public enum TransferEvent: Sendable {
    /// The transfer has begun. The total is in bytes; `nil` while it is unknown.
    case started(total: Int64?)
    /// An upload's positions in the representation, in bytes: what was handed to the kernel and what the server said it
    /// keeps. Sent at most some ten times a second; of several that were not received only the last one is kept.
    case progress(sent: Int64, acknowledged: Int64, total: Int64?)
    /// The bytes that a download has received, including those of earlier runs. Sent like `progress`.
    case received(Int64, total: Int64?)
    /// An interim response.
    case informational(Status, Fields)
    /// The transfer was interrupted and tries again by itself.
    case interrupted(TransferError, retryIn: Duration)
    /// The transfer continues at this position, in bytes.
    case resumed(at: Int64)
    /// The data to resume the transfer has changed. Sent after ``TransferClient/Configuration/checkpointed`` has returned. The data
    /// carries no ticket: the caller ensures that at most one transfer at a time resumes it.
    case checkpoint(ResumeData)
    case completed
    case failed(TransferError)
}

extension TransferEvent {
    /// Whether nothing follows.
    var isLast: Bool {
        switch self {
        case .completed, .failed: true
        default: false
        }
    }

    /// Whether this event replaces `other`, which was not received yet.
    func supersedes(_ other: TransferEvent) -> Bool {
        switch (self, other) {
        case (.progress, .progress), (.received, .received): true
        default: false
        }
    }
}
