import HTTPTransport
import HTTPSemantics
import ResumableUpload
import SystemCalls

/// An event of a transfer. The last one is `completed` or `failed`.
#if hasAttribute(nonexhaustive)
    @nonexhaustive
#endif
public enum TransferEvent: Sendable {
    /// The transfer waits for its turn, because ``TransferClient/Configuration/maxTransfers`` other transfers run.
    case waiting
    /// The transfer has begun. The total is in bytes; `nil` while it is unknown.
    case started(total: Int64?)
    /// The progress of an upload, as positions in its source in bytes, which include the bytes of earlier runs. `sent`
    /// is the end of the bytes that were passed to the kernel, and `acknowledged` is the offset that the server has
    /// acknowledged. The first event of a resumed upload has the offset that the server reports, or the position in the
    /// resume data if the server cannot be reached. Such events are sent at most about ten times a second.
    case progress(sent: Int64, acknowledged: Int64, total: Int64?)
    /// The number of bytes that a download has received, including those of earlier runs. It becomes smaller if the
    /// representation has changed, because everything is received again. This event is sent as often as `progress`.
    case received(Int64, total: Int64?)
    /// An interim response.
    case informational(Status, Fields)
    /// The transfer was interrupted. The next attempt starts after `retryIn`.
    case interrupted(TransferError, retryIn: Duration)
    /// The transfer continues at this position, in bytes.
    case resumed(at: Int64)
    /// The data to resume the transfer has changed. This event is sent after
    /// ``TransferClient/Configuration/onCheckpoint`` has returned. The caller ensures that no other transfer uses the
    /// data while this one runs.
    case checkpoint(ResumeData)
    /// The transfer has succeeded.
    case completed
    /// The transfer has failed, for example because the target rejected the complete upload (4xx or 5xx).
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

/// A line for the log of the program, for ``TransferClient/Configuration/onLogEntry``.
///
/// It contains no credentials, no fields of messages, no queries of URIs and no URI of an upload resource.
public struct TransferLogEntry: Sendable, Hashable {
    /// The levels, from the least to the most important one. Their raw values are those of swift-log.
    public enum Level: String, Sendable, Hashable, CaseIterable, Comparable {
        /// Each request and each final response, and each checkpoint that was saved.
        case debug
        /// A transfer waits for its turn, starts, resumes, succeeds, or was paused or canceled.
        case info
        /// The credentials were refreshed.
        case notice
        /// An attempt failed, and another one follows.
        case warning
        /// A transfer failed.
        case error

        /// Orders the levels by importance: `debug` is the lowest.
        public static func < (left: Level, right: Level) -> Bool {
            (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
        }
    }

    /// The importance.
    public var level: Level
    /// A sentence for people.
    public var message: String
    /// Values by name. All entries have `transfer` (the ``Transfer/id`` of the transfer), `kind`
    /// (`upload` or `download`) and `uri` (that of the caller). Depending on the message there are also `method` and
    /// `request` (the URI of one request), `status`, `position` and `total` (in bytes), `code` and `reason` (of an
    /// error), `attempt`, and `delay` (in seconds).
    public var metadata: [String: String]

    /// An entry with these values.
    /// - Parameters:
    ///   - level: the importance.
    ///   - message: a sentence for people.
    ///   - metadata: values by name.
    public init(_ level: Level, _ message: String, metadata: [String: String] = [:]) {
        self.level = level
        self.message = message
        self.metadata = metadata
    }
}

/// Writes the log entries of one transfer.
struct TransferLog: Sendable {
    private let sink: (@Sendable (TransferLogEntry) -> Void)?
    private let level: TransferLogEntry.Level
    private let metadata: [String: String]

    init<Operation>(_ configuration: TransferClient.Configuration, _ plan: TransferPlan<Operation>) {
        sink = configuration.onLogEntry
        level = configuration.logLevel
        metadata =
            sink == nil
            ? [:]
            : [
                "transfer": plan.id.uuidString, "kind": Operation.noun,
                "uri": RequestURI(plan.request.uri)?.description(hidingPath: false) ?? "",
            ]
    }

    /// - Parameter metadata: computed only if the level is logged. Values that are `nil` are omitted.
    func write(
        _ level: TransferLogEntry.Level, _ message: String, _ metadata: @autoclosure () -> [String: String?] = [:]
    ) {
        guard let sink, level >= self.level else { return }
        let all = self.metadata.merging(metadata().compactMapValues { $0 }) { $1 }
        sink(TransferLogEntry(level, message, metadata: all))
    }

    /// Logs the end of a transfer.
    /// - Parameter error: `nil` for success.
    func end(_ noun: String, _ error: TransferError?, position: Int64, total: Int64?) {
        guard let error else {
            return write(.info, "The \(noun) succeeded.", ["position": "\(position)", "total": total.map { "\($0)" }])
        }
        let isRequested = error.code == .paused || error.code == .cancelled
        write(
            isRequested ? .info : .error, isRequested ? error.message : "The \(noun) failed.",
            error.metadata.merging(["position": "\(position)", "total": total.map { "\($0)" }]) { $1 })
    }
}

extension TransferError {
    /// The values of the error in log entries. The underlying error is omitted: a caller's closure may have thrown it.
    var metadata: [String: String?] {
        ["code": code.rawValue, "reason": message, "status": status.map { "\($0.rawValue)" }]
    }
}
