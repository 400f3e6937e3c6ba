import SystemCalls

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
        /// The events with which a stream of one transfer begins: the last event of each kind.
        var current: [TransferEvent.Kind: Element] = [:]
        var isOver = false
    }

    /// The maximum number of events that wait for the reader of a stream.
    static var capacity: Int { 1024 }

    private let state = Monitor(State())

    /// Passes all further events to `receiver`, which must not use this broadcast.
    func forward(to receiver: @escaping @Sendable (Element) -> Void) {
        state.withLock { state in
            if !state.isOver { state.forward = receiver }
        }
    }

    private func send(_ element: Element, to state: inout State) {
        // Events are sent under the lock, so that all streams receive them in the same order.
        for listener in state.listeners { listener.subscriber?.push(element) }
        state.listeners.removeAll { $0.subscriber == nil }
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
            for kind in TransferEvent.Kind.allCases {
                if let element = state.current[kind] { subscriber.push(element) }
            }
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
            if let kind = event.kind { state.current[kind] = event }
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
