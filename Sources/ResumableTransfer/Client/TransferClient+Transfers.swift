import SystemCalls

extension TransferClient {
    /// The transfers that have started and not ended, in the order in which they were started. Those with
    /// ``TransferProgress/isWaiting`` wait for their turn or for their next attempt.
    public var transfers: [any Transfer] { registered }

    /// A new stream of the events of all transfers of this client. It ends when the client is shut down.
    ///
    /// It begins with the next event, and starts no transfer. At most 1024 events wait for a reader. Of the `progress`,
    /// `received` and `checkpoint` events of a transfer only the latest one waits. If there would be more than 1024
    /// events, the oldest event that is not the last event of its transfer is dropped, or the oldest event if all are
    /// last events.
    public var events: AsyncStream<(transfer: any Transfer, event: TransferEvent)> { clientEvents.stream() }
}

/// Delivers the events of all transfers of a client to each stream.
final class ClientEvents: Sendable {
    typealias Element = (transfer: any Transfer, event: TransferEvent)

    private struct Listener {
        weak var subscriber: EventSubscriber<Element>?
    }

    private struct State {
        var listeners: [Listener] = []
        var isOver = false
    }

    /// The maximum number of events that wait for the reader of a stream.
    static let capacity = 1024

    private let state = Monitor(State())

    func send(_ event: TransferEvent, of transfer: any Transfer) {
        state.withLock { state in
            guard !state.listeners.isEmpty else { return }
            for listener in state.listeners { listener.subscriber?.push((transfer, event)) }
            state.listeners.removeAll { $0.subscriber == nil }
        }
    }

    func stream() -> AsyncStream<Element> {
        let subscriber = EventSubscriber<Element>(adding: ClientEvents.add)
        state.withLock { state in
            if state.isOver { subscriber.finish() } else { state.listeners.append(Listener(subscriber: subscriber)) }
        }
        return AsyncStream(unfolding: { await subscriber.next() }, onCancel: { subscriber.finish() })
    }

    /// Ends all streams.
    func finish() {
        let listeners = state.withLock { state in
            state.isOver = true
            defer { state.listeners = [] }
            return state.listeners
        }
        for listener in listeners { listener.subscriber?.finish() }
    }

    /// Adds an event to those that wait.
    private static func add(_ new: Element, to queue: inout [Element]) {
        let index = queue.lastIndex { $0.transfer === new.transfer && new.event.replaces($0.event) }
        if let index { queue.remove(at: index) }
        if queue.count >= capacity { queue.remove(at: queue.firstIndex { !$0.event.isLast } ?? 0) }
        queue.append(new)
    }
}

extension TransferEvent {
    /// Whether a reader that gets this event does not need an earlier event of the same transfer.
    fileprivate func replaces(_ earlier: TransferEvent) -> Bool {
        if case (.checkpoint, .checkpoint) = (self, earlier) { return true }
        return supersedes(earlier)
    }
}
