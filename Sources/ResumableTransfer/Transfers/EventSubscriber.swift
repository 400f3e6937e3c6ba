import SystemCalls

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

    /// No event follows; those in the queue are still delivered.
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
