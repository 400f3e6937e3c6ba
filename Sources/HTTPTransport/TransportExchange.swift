import HTTPSemantics
import SystemCalls

/// A command of another thread to the transport that performs an exchange.
package enum ExchangeCommand: Sendable {
    case openGate
    case noteProgress
    /// A source or a sink for which the exchange waits is ready.
    case proceed
    case cancel
}

/// Executes the commands to an exchange, in order.
package protocol ExchangeCommands: Sendable {
    func post(_ command: ExchangeCommand, to exchange: TransportExchange)
}

/// One request and its responses. It has exactly one result, whatever happens.
package final class TransportExchange: Sendable {
    private typealias Reader = CheckedContinuation<TransportEvent?, Never>
    private typealias Waiter = CheckedContinuation<TransportResult, Never>

    private struct State {
        /// The events that the reader has not received.
        var events: [TransportEvent] = []
        /// The reader, while it waits for an event or the end.
        var reader: Reader?
        var result: TransportResult?
        var waiting: [Waiter] = []
    }

    private let state = Monitor(State())
    private let commands: any ExchangeCommands

    package init(_ commands: any ExchangeCommands) { self.commands = commands }

    /// The events, for one reader. The sequence ends with the exchange.
    package struct Events: AsyncSequence, AsyncIteratorProtocol {
        fileprivate let exchange: TransportExchange

        package func makeAsyncIterator() -> Events { self }

        package func next() async -> TransportEvent? { await exchange.nextEvent() }
    }

    package var events: Events { Events(exchange: self) }

    private func nextEvent() async -> TransportEvent? {
        await withCheckedContinuation { continuation in
            let next = state.withLock { state -> TransportEvent?? in
                if !state.events.isEmpty { return .some(state.events.removeFirst()) }
                if state.result != nil { return .some(nil) }
                state.reader = continuation
                return nil
            }
            if let next { continuation.resume(returning: next) }
        }
    }

    /// Releases the content that ``TransportRequest/gate`` holds back.
    package func openGate() { commands.post(.openGate, to: self) }

    /// Restarts the stall timeout: the server reports progress that the numbers of sent and received bytes do not show.
    package func noteProgress() { commands.post(.noteProgress, to: self) }

    /// Continues an exchange that waits for its source or its sink.
    package func proceed() { commands.post(.proceed, to: self) }

    /// Ends the exchange as ``TransportFailure/canceled`` unless it has ended. It can be called on any thread at any
    /// time.
    package func cancel() { commands.post(.cancel, to: self) }

    /// Waits for the end. Canceling the task that waits does not cancel the exchange.
    package func result() async -> TransportResult {
        if let result = state.withLock({ $0.result }) { return result }
        return await withCheckedContinuation { continuation in
            let result = state.withLock { state in
                if state.result == nil { state.waiting.append(continuation) }
                return state.result
            }
            if let result { continuation.resume(returning: result) }
        }
    }

    // MARK: The engine's side

    /// Adds an event, which the reader receives after ``deliver()`` or at the end of the exchange. So events
    /// that occur together wake the reader once.
    /// - Returns: whether ``deliver()`` has to be called for this event.
    package func add(_ event: TransportEvent) -> Bool {
        state.withLock { state in
            state.events.append(event)
            return state.events.count == 1
        }
    }

    /// Wakes the reader if there are events.
    package func deliver() {
        let (reader, event) = state.withLock { state -> (Reader?, TransportEvent?) in
            guard let reader = state.reader, !state.events.isEmpty else { return (nil, nil) }
            state.reader = nil
            return (reader, state.events.removeFirst())
        }
        reader?.resume(returning: event)
    }

    /// Adds an event, and wakes the reader.
    package func report(_ event: TransportEvent) {
        _ = add(event)
        deliver()
    }

    /// Sets the result, unless it was set before.
    package func end(_ result: TransportResult) {
        let (reader, event, waiting) = state.withLock { state -> (Reader?, TransportEvent?, [Waiter]) in
            guard state.result == nil else { return (nil, nil, []) }
            state.result = result
            defer {
                state.reader = nil
                state.waiting = []
            }
            let event = state.reader == nil || state.events.isEmpty ? nil : state.events.removeFirst()
            return (state.reader, event, state.waiting)
        }
        reader?.resume(returning: event)
        for continuation in waiting { continuation.resume(returning: result) }
    }

    /// Ends an exchange before anything was sent.
    package func end(_ failure: TransportFailure) { end(TransportResult(failure)) }
}

/// An event of an exchange.
package enum TransportEvent: Sendable {
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
package struct TransportResult: Sendable {
    /// The final response's head, even if the connection was lost later.
    package var head: ClientResponseHead?
    /// The part of the response's content that was kept (``BodyDisposition/collect(limit:within:)``).
    package var content: [UInt8]
    /// The number of bytes of the request's content passed to the kernel. The peer may have received fewer.
    package var sent: Int64
    /// The number of bytes of the response's content that were received.
    package var received: Int64
    /// Whether the end of the request's content was reached (``ContentSender/isAtEnd(sent:)``).
    package var hasSourceEnded: Bool
    /// The reason why there is no complete response; `nil` if there is one. An early response can be complete although
    /// the request is not (RFC 9112 section 9.5).
    package var failure: TransportFailure?
    /// Whether the response's content was received to the end according to its framing.
    package var isContentComplete: Bool
    /// The times of the exchange, without the URI of the request; `nil` if it was not started or is not measured.
    package var metrics: RequestMetrics?

    package init(
        head: ClientResponseHead?, content: [UInt8], sent: Int64, received: Int64, hasSourceEnded: Bool,
        failure: TransportFailure?, isContentComplete: Bool, metrics: RequestMetrics? = nil
    ) {
        self.head = head
        self.content = content
        self.sent = sent
        self.received = received
        self.hasSourceEnded = hasSourceEnded
        self.failure = failure
        self.isContentComplete = isContentComplete
        self.metrics = metrics
    }

    /// The result of an exchange that ended before anything was sent.
    package init(_ failure: TransportFailure) {
        self.init(
            head: nil, content: [], sent: 0, received: 0, hasSourceEnded: false, failure: failure,
            isContentComplete: false)
    }
}

/// One request for ``TransportEngine``.
package struct TransportRequest: Sendable {
    /// An absolute URI with the scheme http or https.
    package var uri: String
    /// The parsed ``uri``, if the caller has it. `Location` of a response is resolved against it.
    package var parsedURI: RequestURI?
    package var method: Method
    /// The fields are sent unchanged, except for `Expect`, `Content-Length` and `Transfer-Encoding`: ``content``
    /// determines the framing, and only ``gate`` delays the content.
    package var fields: Fields
    /// The range of ``source`` that is sent. Its length is `Content-Length`; content of unknown length is sent in
    /// chunks until the source ends.
    package var content = RequestContent.none
    /// The source of the content; `nil` if there is no content.
    package var source: (any UploadSource)?
    /// The maximum time for which the content waits for ``TransportExchange/openGate()`` after the head was sent;
    /// `nil`: the content does not wait.
    package var gate: Duration?
    /// The maximum time in which no byte moves in either direction on a connection. After it the exchange ends as
    /// ``TransportFailure/stalled``. The time for which the client waits for the response is included, even if interim
    /// responses arrive. The time for which the content waits for the gate or for the rate limit is not included. If no
    /// connection is made within this time, including its TLS handshake, the exchange ends as
    /// ``TransportFailure/connectStalled``.
    package var stallTimeout: Duration?
    /// The maximum rate of content in bytes per second, in each direction.
    package var rateLimit: Int64?
    package var settings: TransportSettings
    /// The request target as it is sent; `nil`: path and query of ``uri``.
    package var target: String?
    /// Whether the exchange reports events, and its result has metrics.
    package var isMeasured = true
    /// Whether the request may be sent again if a connection of an earlier request turns out to be closed.
    package var isRepeatable = true
    /// Whether the request is sent on a new connection: the server may be about to close one of an earlier request.
    package var isNewConnectionNeeded = false
    /// Called once, on the thread of the transfer, with the complete final head.
    package var receive: @Sendable (ClientResponseHead) -> BodyDisposition

    package init(
        uri: String, method: Method, fields: Fields, content: RequestContent = .none,
        source: (any UploadSource)? = nil, stallTimeout: Duration?, rateLimit: Int64? = nil,
        settings: TransportSettings, receive: @escaping @Sendable (ClientResponseHead) -> BodyDisposition
    ) {
        self.uri = uri
        self.method = method
        self.fields = fields
        self.content = content
        self.source = source
        self.stallTimeout = stallTimeout
        self.rateLimit = rateLimit
        self.settings = settings
        self.receive = receive
    }
}

extension TransportRequest {
    /// The maximum time to make a connection.
    package var connectTimeout: Duration { min(settings.connectTimeout, stallTimeout ?? settings.connectTimeout) }

    /// Whether the connection is encrypted.
    var isSecure: Bool { uri.hasPrefixIgnoringASCIICase("https:") }

    /// The content that is sent: none with HEAD.
    package var sentContent: RequestContent { method == .head ? .none : content }

    /// Content that libcurl gets with the request, and sends together with the head: this saves a system call, and the
    /// server gets a complete request at once. Its progress cannot be measured. `nil` for content that is sent later.
    var contentWithHead: [UInt8]? {
        guard !isMeasured, gate == nil, rateLimit == nil, let bytes = (source as? BytesSource)?.bytes,
            bytes.count <= Self.maxContentWithHead, sentContent == .range(from: 0, count: Int64(bytes.count))
        else { return nil }
        return bytes
    }

    /// libcurl sends longer content separately.
    private static let maxContentWithHead = (64 << 10) - 1
}

/// The handling of the content of a response.
package enum BodyDisposition: Sendable {
    /// Up to `limit` bytes are kept for ``TransportResult/content``. The exchange ends, without a failure, if more
    /// follow or when this time has passed since the head.
    case collect(limit: Int, within: Duration)
    case write(any BodySink)
    /// The content is not received: the exchange ends as ``TransportFailure/canceled``, with the head in its result.
    case abort
}

/// Receives the content of a response.
package protocol BodySink: Sendable {
    /// Receives all of `bytes`, which follow the bytes of the previous call. Called on the thread of the
    /// transfer.
    /// - Throws: an error that ends the exchange as ``TransportFailure/sinkFailed(_:)``.
    func write(_ bytes: UnsafeRawBufferPointer) throws(Errno)

    /// Whether the sink accepts bytes now.
    /// - Parameter wake: if the result is false, called once on any thread as soon as the sink accepts bytes, after
    ///   this function has returned.
    func isReady(orCall wake: @escaping @Sendable () -> Void) -> Bool
}

extension BodySink {
    package func isReady(orCall wake: @escaping @Sendable () -> Void) -> Bool { true }
}

/// The settings of connections.
package struct TransportSettings: Sendable {
    /// The path of a PEM file with certificates to trust instead of the system's.
    package var caFile: FilePath?
    /// The URI of a proxy; `nil`: the proxy that the environment names (`http_proxy`, `https_proxy`, `no_proxy`);
    /// empty: none.
    package var proxy: String?
    package var httpVersion: HTTPVersion
    /// The maximum time from the search for the address to the end of the TLS handshake.
    package var connectTimeout: Duration
    /// The certificate with which the client authenticates itself.
    package var clientCertificate: ClientCertificate?
    /// The version of IP that connections use; `nil`: any.
    package var internetProtocol: InternetProtocol?
    /// The path of a Unix socket to which connections are made, in place of the host of the URI.
    package var unixSocket: FilePath?
    /// The maximum number of bytes of a response's content that are read at once.
    package var bufferSize = 512 << 10

    package init(
        caFile: FilePath? = nil, proxy: String? = nil, httpVersion: HTTPVersion, connectTimeout: Duration,
        clientCertificate: ClientCertificate? = nil
    ) {
        self.caFile = caFile
        self.proxy = proxy
        self.httpVersion = httpVersion
        self.connectTimeout = connectTimeout
        self.clientCertificate = clientCertificate
    }
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
