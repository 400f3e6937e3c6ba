import HTTPSemantics

/// An event of a transfer. The last one is `completed` or `failed`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive
#endif
public enum TransferEvent: Sendable {
    /// The transfer waits for its turn, because ``TransferClient/Configuration/maximumTransfers`` other transfers run.
    case waiting
    /// The transfer has begun. The total is in bytes; `nil` while it is unknown.
    case started(total: Int64?)
    /// The progress of an upload in bytes. `sent` is the end of the bytes that were passed to the kernel, and
    /// `acknowledged` is the offset that the server has acknowledged. Such events are sent at most about ten times a
    /// second.
    case progress(sent: Int64, acknowledged: Int64, total: Int64?)
    /// The number of bytes that a download has received, including those of earlier runs. This event is sent as often
    /// as `progress`.
    case received(Int64, total: Int64?)
    /// An interim response.
    case informational(Status, Fields)
    /// The transfer was interrupted. The next attempt starts after `retryIn`.
    case interrupted(TransferError, retryIn: Duration)
    /// The transfer continues at this position, in bytes.
    case resumed(at: Int64)
    /// The data to resume the transfer has changed. This event is sent after
    /// ``TransferClient/Configuration/onCheckpoint`` has returned. The data has no ticket: the caller ensures
    /// that at most one transfer at a time resumes it.
    case checkpoint(ResumeData)
    /// The transfer has succeeded.
    case completed
    /// The transfer has failed, also because the target rejected the complete upload (4xx or 5xx).
    case failed(TransferError)
}

extension TransferEvent {
    /// Whether this is the last event.
    var isLast: Bool { kind == .end }

    /// The events of which only the latest one describes the state of a transfer, in the order in which a new stream
    /// begins with them.
    enum Kind: CaseIterable {
        case start, checkpoint, progress, end
    }

    var kind: Kind? {
        switch self {
        case .started, .waiting: .start
        case .checkpoint: .checkpoint
        case .progress, .received: .progress
        case .completed, .failed: .end
        case .informational, .interrupted, .resumed: nil
        }
    }

    /// Whether a reader that gets this event does not need an earlier event of the same transfer.
    func replaces(_ earlier: TransferEvent) -> Bool {
        (kind == .checkpoint || kind == .progress) && kind == earlier.kind
    }
}
