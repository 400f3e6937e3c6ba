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

/// One request for ``TransportEngine``.
struct TransportRequest: Sendable {
    /// The head of the request. Its URI is absolute, with the scheme http or https. The fields are sent unchanged,
    /// except for `Expect`, `Content-Length` and `Transfer-Encoding`: ``content`` determines the framing, and only
    /// ``gate`` delays the content.
    var message: TransferRequest
    /// The range of ``source`` that is sent. Its length is `Content-Length`; content of unknown length is sent in
    /// chunks until the source ends.
    var content = ClientRequest.Content.none
    /// `nil` if there is no content.
    var source: (any UploadSource)?
    /// The maximum time for which the content waits for ``TransportExchange/openGate()`` after the head was sent;
    /// `nil`: the content does not wait.
    var gate: Duration?
    /// The maximum time in which no byte moves in either direction on a connection. After it the exchange ends as
    /// ``TransportFailure/stalled``. The time for which the client waits for the response is included, also if
    /// interim responses arrive. The time for which the content waits for the gate or for the rate limit is not
    /// included. If no connection is made within this time, including its TLS handshake, the exchange ends as
    /// ``TransportFailure/connectStalled``.
    var stallTimeout: Duration?
    /// The maximum rate of content in bytes per second, in each direction.
    var rateLimit: Int64?
    var settings: TransportSettings
    /// Called once, on the engine's thread, with the complete final head.
    var receive: @Sendable (ClientResponseHead) -> BodyDisposition
}

extension TransportRequest {
    /// The maximum time to make a connection.
    var connectTimeout: Duration { min(settings.connectTimeout, stallTimeout ?? settings.connectTimeout) }

    /// The content that is sent: none with HEAD.
    var sentContent: ClientRequest.Content { message.method == .head ? .none : content }
}

/// What is done with the content of a response.
enum BodyDisposition: Sendable {
    /// Up to `limit` bytes are kept for ``TransportResult/content``. The exchange ends, without a failure, if more
    /// follow or when this time has passed since the head.
    case collect(limit: Int, within: Duration)
    case write(any BodySink)
    /// The content is not received: the exchange ends as ``TransportFailure/cancelled``, with the head in its result.
    case abort
}

/// Receives the content of a response.
protocol BodySink: Sendable {
    /// Receives all of `bytes`, which follow the bytes of the previous call. Called on the engine's thread.
    /// - Throws: an error that ends the exchange as ``TransportFailure/sinkFailed(_:)``.
    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno)

    /// Whether the sink accepts bytes now.
    /// - Parameter wake: if the result is false, called once on any thread as soon as the sink accepts bytes, after
    ///   this function has returned.
    func isReady(orCall wake: @escaping @Sendable () -> Void) -> Bool
}

extension BodySink {
    func isReady(orCall wake: @escaping @Sendable () -> Void) -> Bool { true }
}

/// The settings of connections.
struct TransportSettings: Sendable {
    /// The path of a PEM file with certificates to trust instead of the system's.
    var caFile: FilePath?
    /// The URI of a proxy; nil: the proxy that the environment names (`http_proxy`, `https_proxy`, `no_proxy`); empty:
    /// none.
    var proxy: String?
    var httpVersion: HTTPVersion
    /// The maximum time from the search for the address to the end of the TLS handshake.
    var connectTimeout: Duration
    /// The certificate with which the client authenticates itself.
    var clientCertificate: ClientCertificate?
}

/// The version of HTTP that a client uses.
public enum HTTPVersion: Sendable, Hashable {
    /// HTTP/2 if the server offers it during the TLS handshake and libcurl is of version 8.7 or later, which sends
    /// uploads in HTTP/2 without errors; otherwise HTTP/1.1.
    case automatic
    /// HTTP/1.1.
    case http1
    /// HTTP/2. Over TLS, HTTP/1.1 is used if the server does not offer HTTP/2. Without TLS the server must support
    /// HTTP/2, because the client begins with it (RFC 9113 section 3.3).
    case http2
}
