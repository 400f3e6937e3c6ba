import HTTPSemantics
import ResumableUpload
import SystemCalls

/// A command of another thread to the transport that performs an exchange.
enum ExchangeCommand: Sendable {
    case openGate
    case noteProgress
    /// A source or a sink for which the exchange waits is ready.
    case proceed
    case cancel
}

/// Executes the commands to an exchange, in order.
protocol ExchangeCommands: Sendable {
    func post(_ command: ExchangeCommand, to exchange: TransportExchange)
}

/// One request and its responses. It has exactly one result, whatever happens.
final class TransportExchange: Sendable {
    private struct Outcome {
        var result: TransportResult?
        var waiting: [CheckedContinuation<TransportResult, Never>] = []
    }

    /// The events, for one reader. The stream ends with the exchange.
    let events: AsyncStream<TransportEvent>
    private let continuation: AsyncStream<TransportEvent>.Continuation
    private let outcome = Monitor(Outcome())
    private let commands: any ExchangeCommands

    init(_ commands: any ExchangeCommands) {
        self.commands = commands
        (events, continuation) = AsyncStream.makeStream(of: TransportEvent.self)
    }

    /// Releases the content that ``TransportRequest/gate`` holds back.
    func openGate() { commands.post(.openGate, to: self) }

    /// Restarts the stall timeout: the server reports progress that the numbers of sent and received bytes do not show.
    func noteProgress() { commands.post(.noteProgress, to: self) }

    /// Continues an exchange that waits for its source or its sink.
    func proceed() { commands.post(.proceed, to: self) }

    /// Ends the exchange as ``TransportFailure/cancelled`` unless it has ended. It can be called on any thread at any
    /// time.
    func cancel() { commands.post(.cancel, to: self) }

    /// Waits for the end. Canceling the task that waits does not cancel the exchange.
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

    func report(_ event: TransportEvent) { continuation.yield(event) }

    /// Sets the result, unless it was set before.
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
                isContentComplete: false))
    }
}

/// An event of an exchange.
enum TransportEvent: Sendable {
    /// An interim response (1xx); any number of them.
    case interim(ClientResponseHead)
    /// The final response's head.
    case head(ClientResponseHead)
    /// The number of bytes of the request's content passed to the kernel so far; at most every 100 ms, and at the end.
    case sent(Int64)
    /// The number of bytes of the response's content received so far; at most every 100 ms, again every 250 ms while no
    /// more come, and at the end.
    case received(Int64)
}

/// The result of an exchange.
struct TransportResult: Sendable {
    /// The final response's head, also if the connection was lost later.
    var head: ClientResponseHead?
    /// The part of the response's content that was kept (``BodyDisposition/collect(limit:within:)``).
    var content: [UInt8]
    /// The number of bytes of the request's content passed to the kernel. The peer may have received fewer.
    var sent: Int64
    /// The number of bytes of the response's content that were received.
    var received: Int64
    /// Whether the end of the request's content was reached (``ContentSender/isAtEnd(sent:)``).
    var sourceEnded: Bool
    /// The reason why there is no complete response; nil if there is one. An early response can be complete although
    /// the request is not (RFC 9112 §9.5).
    var failure: TransportFailure?
    /// Whether the response's content was received to the end according to its framing.
    var isContentComplete: Bool
    /// The times of the exchange, without the URI of the request; nil if it was not started.
    var metrics: RequestMetrics?
}
