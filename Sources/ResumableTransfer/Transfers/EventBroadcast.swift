import SystemCalls

/// Gives every event of a transfer to each of its streams.
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
            // Under the lock, so that all streams see the same order.
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
