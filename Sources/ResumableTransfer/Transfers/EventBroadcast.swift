import SystemCalls

/// Delivers every event of a transfer to each of its streams.
final class EventBroadcast: Sendable {
    private struct Listener {
        weak var subscriber: EventSubscriber<TransferEvent>?
    }

    private struct State {
        var listeners: [Listener] = []
        // The first events of a stream that is created later.
        var started: TransferEvent?
        var checkpoint: TransferEvent?
        var progress: TransferEvent?
        var last: TransferEvent?
        /// Receives all events after the streams, until the last event.
        var forward: (@Sendable (TransferEvent) -> Void)?
    }

    private let state = Monitor(State())

    /// Sends the event to all streams. Has no effect after the last event.
    func send(_ event: TransferEvent) {
        state.withLock { state in
            guard state.last == nil else { return }
            switch event {
            case .started, .waiting: state.started = event
            case .checkpoint: state.checkpoint = event
            case .progress, .received: state.progress = event
            case .completed, .failed: state.last = event
            case .informational, .interrupted, .resumed: break
            }
            // Events are sent under the lock, so that all streams receive them in the same order.
            for listener in state.listeners {
                listener.subscriber?.push(event)
                if event.isLast { listener.subscriber?.finish() }
            }
            state.listeners.removeAll { $0.subscriber == nil || event.isLast }
            state.forward?(event)
            if event.isLast { state.forward = nil }
        }
    }

    /// Passes all further events to `receiver`, which must not use this broadcast.
    func forward(to receiver: @escaping @Sendable (TransferEvent) -> Void) {
        state.withLock { state in
            if state.last == nil { state.forward = receiver }
        }
    }

    func stream() -> AsyncStream<TransferEvent> {
        let subscriber = EventSubscriber<TransferEvent> { event, queue in
            if let last = queue.last, event.supersedes(last) { queue.removeLast() }
            queue.append(event)
        }
        state.withLock { state in
            for event in [state.started, state.checkpoint, state.progress, state.last] {
                if let event { subscriber.push(event) }
            }
            if state.last == nil {
                state.listeners.append(Listener(subscriber: subscriber))
            } else {
                subscriber.finish()
            }
        }
        return AsyncStream(unfolding: { await subscriber.next() }, onCancel: { subscriber.finish() })
    }
}

/// The events that one stream has not delivered yet.
final class EventSubscriber<Event: Sendable>: Sendable {
    private struct State {
        var queue: [Event] = []
        var waiting: [CheckedContinuation<Event?, Never>] = []
        var isOver = false
    }

    private let add: @Sendable (Event, inout [Event]) -> Void
    private let state = Monitor(State())

    /// - Parameter add: adds an event to those that wait for the reader, and removes those that it replaces.
    init(adding add: @escaping @Sendable (Event, inout [Event]) -> Void) { self.add = add }

    func push(_ event: Event) {
        let waiting = state.withLock { state -> CheckedContinuation<Event?, Never>? in
            if state.isOver { return nil }
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            add(event, &state.queue)
            return nil
        }
        waiting?.resume(returning: event)
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

    func next() async -> Event? {
        await withCheckedContinuation { continuation in
            let found = state.withLock { state -> Event?? in
                if !state.queue.isEmpty { return .some(state.queue.removeFirst()) }
                if state.isOver { return .some(nil) }
                state.waiting.append(continuation)
                return nil
            }
            if let found { continuation.resume(returning: found) }
        }
    }
}
