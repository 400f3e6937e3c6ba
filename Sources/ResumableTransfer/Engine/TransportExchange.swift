import SystemCalls

/// One request and what comes back. It has exactly one result, whatever happens.
final class TransportExchange: Sendable {
    private struct Outcome {
        var result: TransportResult?
        var waiting: [CheckedContinuation<TransportResult, Never>] = []
    }

    /// For one reader. It ends with the exchange.
    let events: AsyncStream<TransportEvent>
    private let continuation: AsyncStream<TransportEvent>.Continuation
    private let outcome = Monitor(Outcome())
    private let commands: EngineCommands

    init(_ commands: EngineCommands) {
        self.commands = commands
        (events, continuation) = AsyncStream.makeStream(of: TransportEvent.self)
    }

    /// Lets the content that ``TransportRequest/gate`` holds back go.
    func openGate() { commands.post(.openGate(self)) }

    /// Restarts the stall timeout: the server reports progress that no count of bytes shows.
    func noteProgress() { commands.post(.noteProgress(self)) }

    /// Ends the exchange as ``TransportFailure/cancelled`` unless it has ended. Any thread, any time.
    func cancel() { commands.post(.cancel(self)) }

    /// Waits for the end. Cancelling the task that waits does not cancel the exchange.
    func result() async -> TransportResult {
        await withCheckedContinuation { continuation in
            let result = outcome.withLock { outcome in
                if outcome.result == nil { outcome.waiting.append(continuation) }
                return outcome.result
            }
            if let result { continuation.resume(returning: result) }
        }
    }

    // MARK: The engine's side

    func tell(_ event: TransportEvent) { continuation.yield(event) }

    /// Gives the result. Only the first one counts.
    func end(_ result: TransportResult) {
        let waiting: [CheckedContinuation<TransportResult, Never>] = outcome.withLock { outcome in
            guard outcome.result == nil else { return [] }
            outcome.result = result
            defer { outcome.waiting = [] }
            return outcome.waiting
        }
        continuation.finish()
        for continuation in waiting { continuation.resume(returning: result) }
    }

    /// Ends an exchange of which nothing was sent.
    func end(_ failure: TransportFailure) {
        end(
            TransportResult(
                head: nil, content: [], sent: 0, received: 0, sourceEnded: false, failure: failure,
                isContentWhole: false))
    }
}
