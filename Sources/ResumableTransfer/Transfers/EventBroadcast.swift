import SystemCalls

/// Delivers every event of a transfer to each of its streams.
final class EventBroadcast: Sendable {
    private struct Listener {
        weak var subscriber: EventSubscriber?
    }

    private struct State {
        var listeners: [Listener] = []
        // The first events of a stream that is created later.
        var started: TransferEvent?
        var checkpoint: TransferEvent?
        var progress: TransferEvent?
        var last: TransferEvent?
    }

    private let state = Monitor(State())

    /// Sends the event to all streams; without effect after the last event.
    func send(_ event: TransferEvent) {
        state.withLock { state in
            guard state.last == nil else { return }
            switch event {
            case .started: state.started = event
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
        }
    }

    func stream() -> AsyncStream<TransferEvent> {
        let subscriber = EventSubscriber()
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
final class EventSubscriber: Sendable {
    private struct State {
        var queue: [TransferEvent] = []
        var waiting: [CheckedContinuation<TransferEvent?, Never>] = []
        var isOver = false
    }

    private let state = Monitor(State())

    func push(_ event: TransferEvent) {
        let waiting = state.withLock { state -> CheckedContinuation<TransferEvent?, Never>? in
            if state.isOver { return nil }
            if !state.waiting.isEmpty { return state.waiting.removeFirst() }
            if let last = state.queue.last, event.supersedes(last) { state.queue.removeLast() }
            state.queue.append(event)
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

    func next() async -> TransferEvent? {
        await withCheckedContinuation { continuation in
            let found = state.withLock { state -> TransferEvent?? in
                if !state.queue.isEmpty { return .some(state.queue.removeFirst()) }
                if state.isOver { return .some(nil) }
                state.waiting.append(continuation)
                return nil
            }
            if let found { continuation.resume(returning: found) }
        }
    }
}
