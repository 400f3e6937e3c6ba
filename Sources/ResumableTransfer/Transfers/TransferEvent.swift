import HTTPSemantics

/// What happens to a transfer, in order. `completed` or `failed` is the last one.
public enum TransferEvent: Sendable {
    /// The transfer has begun. The total is in bytes; `nil` while it is unknown.
    case started(total: Int64?)
    /// An upload's positions in the representation, in bytes: what was handed to the kernel and what the server said it
    /// keeps. Told at most some ten times a second; of several that nobody took only the last one is kept.
    case progress(sent: Int64, acknowledged: Int64, total: Int64?)
    /// A download's bytes at hand, those of earlier runs included. Told like `progress`.
    case received(Int64, total: Int64?)
    /// An interim response.
    case informational(Status, Fields)
    /// The transfer stands still and will go on by itself.
    case interrupted(TransferError, retryIn: Duration)
    /// The transfer goes on at this position, in bytes.
    case resumed(at: Int64)
    /// What a later process needs has changed. Sent after ``TransferClient/Configuration/checkpointed`` has returned. The data
    /// carries no ticket: whoever keeps it sees to it that at most one transfer at a time is made of it.
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

    /// Whether this event makes `other` pointless, which nobody has taken yet.
    func supersedes(_ other: TransferEvent) -> Bool {
        switch (self, other) {
        case (.progress, .progress), (.received, .received): true
        default: false
        }
    }
}
