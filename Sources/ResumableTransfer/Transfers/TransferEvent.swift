import HTTPSemantics
import HTTPTransport
import ResumableUpload
import Synchronization
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

    /// The kinds of events that describe the state of a transfer. A new stream begins with the latest event of each
    /// kind, in this order.
    enum Kind: Int, CaseIterable {
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
        /// Each request and each final response, and each checkpoint that is saved.
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
                "uri": plan.target?.description(hidingPath: false) ?? "",
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
    func end(_ noun: String, _ error: TransferError?, _ progress: TransferProgress) {
        if sink == nil { return }
        let position = progress.completedUnitCount
        let total = progress.isIndeterminate ? nil : progress.totalUnitCount
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

/// An element that a ``Broadcast`` delivers: an event of one transfer.
protocol BroadcastElement: Sendable {
    var event: TransferEvent { get }

    /// Whether both are events of the same transfer.
    func isOfSameTransfer(as other: Self) -> Bool
}

extension TransferEvent: BroadcastElement {
    var event: TransferEvent { self }

    func isOfSameTransfer(as other: TransferEvent) -> Bool { true }
}

/// An event of one of the transfers of a client.
struct ClientEvent: BroadcastElement {
    let transfer: any Transfer
    let event: TransferEvent

    func isOfSameTransfer(as other: ClientEvent) -> Bool { transfer === other.transfer }
}

/// Delivers the events of one transfer to each of its streams.
typealias EventBroadcast = Broadcast<TransferEvent>
/// Delivers the events of all transfers of a client to each stream.
typealias ClientEvents = Broadcast<ClientEvent>

/// Delivers events to streams. A bounded number of events waits for the reader of each stream.
final class Broadcast<Element: BroadcastElement>: Sendable {
    private struct Listener {
        weak var subscriber: EventSubscriber<Element>?
    }

    private struct State {
        var listeners: [Listener] = []
        /// Receives all events after the streams.
        var forward: (@Sendable (Element) -> Void)?
        /// The events with which a stream of one transfer begins: the last event of each kind, in the order of the kinds.
        var current = [Element?](repeating: nil, count: TransferEvent.Kind.allCases.count)
        var isOver = false
    }

    /// The maximum number of events that wait for the reader of a stream.
    static var capacity: Int { 1024 }

    private let state = Mutex(State())

    /// Passes all further events to `receiver`, which must not use this broadcast.
    func forward(to receiver: @escaping @Sendable (Element) -> Void) {
        state.withLock { state in
            if !state.isOver { state.forward = receiver }
        }
    }

    private func send(_ element: Element, to state: inout State) {
        // Events are sent under the lock, so that all streams receive them in the same order.
        if !state.listeners.isEmpty {
            for listener in state.listeners { listener.subscriber?.push(element) }
            state.listeners.removeAll { $0.subscriber == nil }
        }
        state.forward?(element)
    }

    private static func finish(_ state: inout State) {
        state.isOver = true
        for listener in state.listeners { listener.subscriber?.finish() }
        state.listeners = []
        state.forward = nil
    }

    /// Ends all streams.
    func finish() { state.withLock { Self.finish(&$0) } }

    /// A new stream of the results of `transform`.
    func stream<Output>(_ transform: @escaping @Sendable (Element) -> Output) -> AsyncStream<Output> {
        let subscriber = EventSubscriber<Element>()
        state.withLock { state in
            for case let element? in state.current { subscriber.push(element) }
            if state.isOver { subscriber.finish() } else { state.listeners.append(Listener(subscriber: subscriber)) }
        }
        return AsyncStream(
            unfolding: { await subscriber.next().map(transform) }, onCancel: { subscriber.finish() })
    }
}

extension Broadcast<TransferEvent> {
    /// Sends the event to all streams. Has no effect after the last event.
    func send(_ event: TransferEvent) {
        state.withLock { state in
            guard !state.isOver else { return }
            if let kind = event.kind { state.current[kind.rawValue] = event }
            send(event, to: &state)
            if event.isLast { Self.finish(&state) }
        }
    }

    /// A new stream, which begins with the current state of the transfer.
    func stream() -> AsyncStream<TransferEvent> { stream { $0 } }
}

extension Broadcast<ClientEvent> {
    /// Sends the event to all streams.
    func send(_ event: TransferEvent, of transfer: any Transfer) {
        state.withLock { send(ClientEvent(transfer: transfer, event: event), to: &$0) }
    }

    /// A new stream, which begins with the next event.
    func stream() -> AsyncStream<(transfer: any Transfer, event: TransferEvent)> {
        stream { (transfer: $0.transfer, event: $0.event) }
    }
}

/// The events that one stream has not delivered yet.
private final class EventSubscriber<Element: BroadcastElement>: Sendable {
    private struct State {
        var queue: [Element] = []
        var waiting: [CheckedContinuation<Element?, Never>] = []
        var isOver = false
    }

    private let state = Monitor(State())

    func push(_ element: Element) {
        let waiting = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            if state.isOver { return nil }
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            add(element, to: &state.queue)
            return nil
        }
        waiting?.resume(returning: element)
    }

    /// Adds an event to those that wait, and removes those that it replaces.
    private func add(_ new: Element, to queue: inout [Element]) {
        let replaced = queue.lastIndex { new.event.replaces($0.event) && new.isOfSameTransfer(as: $0) }
        if let replaced { queue.remove(at: replaced) }
        if queue.count >= Broadcast<Element>.capacity { queue.remove(at: queue.firstIndex { !$0.event.isLast } ?? 0) }
        queue.append(new)
    }

    /// Ends the stream after the events that are still in the queue.
    func finish() {
        let waiting = state.withLock { state in
            state.isOver = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }

    func next() async -> Element? {
        await withCheckedContinuation { continuation in
            let found = state.withLock { state -> Element?? in
                if !state.queue.isEmpty { return .some(state.queue.removeFirst()) }
                if state.isOver { return .some(nil) }
                state.waiting.append(continuation)
                return nil
            }
            if let found { continuation.resume(returning: found) }
        }
    }
}
