import HTTPSemantics
import HTTPTransport
import SystemCalls
import TransferServer

/// The connections to one origin.
final class OriginClient: Sendable {
    /// Each engine has one thread and its own connections.
    private let engines: [TransportEngine]
    private let next = Monitor(0)
    let origin: Origin
    /// The maximum time in which the origin receives and sends nothing.
    let timeout: Duration

    init(_ origin: Origin, timeout: Duration, threads: Int = 2) {
        self.origin = origin
        self.timeout = timeout
        engines = (0..<threads).map { _ in TransportEngine() }
    }

    deinit { for engine in engines { engine.shutDown() } }

    /// Starts a request.
    func start(_ request: OriginRequest) -> OriginExchange {
        let exchange = OriginExchange()
        var transport = TransportRequest(
            uri: origin.url, method: request.method, fields: request.fields, content: request.content,
            source: request.source, stallTimeout: timeout,
            settings: origin.settings(connectTimeout: min(timeout, .seconds(10))),
            receive: { [exchange] head in exchange.receive(head) })
        transport.target = request.target
        transport.isRepeatable = request.isRepeatable
        transport.needsNewConnection = request.needsNewConnection
        transport.hasAllFields = true
        transport.isForwarded = true
        let index = next.withLock { index in
            index = (index + 1) % engines.count
            return index
        }
        exchange.begin(engines[index].start(transport, observer: exchange))
        return exchange
    }
}

/// A request to an origin.
struct OriginRequest {
    var method: Method
    /// The path and query.
    var target: String
    var fields: Fields
    var content = RequestContent.none
    var source: (any UploadSource)?
    /// Whether the request can be sent again on another connection if the first one was closed.
    var isRepeatable: Bool
    /// Whether a connection of an earlier request, which the origin may be about to close, is not used.
    var needsNewConnection = false
}

/// One request to an origin and its response. A thread of a connection waits for it; libcurl's thread reports to it.
final class OriginExchange: ExchangeObserver {
    private struct State {
        var interims: [ClientResponseHead] = []
        var head: ClientResponseHead?
        var result: TransportResult?
        var exchange: TransportExchange?
        var isCanceled = false
        /// The time of the final head or of the end, in monotonic nanoseconds.
        var respondedAt: Int64?
    }

    private let startedAt = SystemClock.monotonicNanoseconds()

    /// The content of the response.
    let content = ContentPipe(length: nil)
    private let state = Monitor(State())

    func begin(_ exchange: TransportExchange) {
        let isCanceled = state.withLock { state in
            state.exchange = exchange
            return state.isCanceled
        }
        if isCanceled { exchange.cancel() }
    }

    /// Ends the exchange, unless it has ended.
    func cancel() {
        content.discard()
        let exchange = state.withLock { state in
            state.isCanceled = true
            return state.result == nil ? state.exchange : nil
        }
        exchange?.cancel()
    }

    // MARK: The thread of a connection

    /// What has happened.
    enum Progress {
        case interim(ClientResponseHead)
        case head(ClientResponseHead)
        /// The exchange has ended without the head of a final response.
        case failed(TransportResult)
    }

    /// Waits for the next interim response, the head of the final response, or the end.
    /// - Returns: `nil` at the deadline.
    func progress(until deadline: Int64) -> Progress? {
        state.wait(until: deadline) { state in
            if !state.interims.isEmpty { return .interim(state.interims.removeFirst()) }
            if let head = state.head { return .head(head) }
            return state.result.map { .failed($0) }
        }
    }

    /// The head of the final response; `nil` if it has not arrived.
    var head: ClientResponseHead? { state.withLock { $0.head } }

    /// Whether a response has arrived, interim or final, or the exchange has ended.
    var hasNews: Bool { state.withLock { !$0.interims.isEmpty || $0.head != nil || $0.result != nil } }

    /// The interim responses that were not returned before.
    func takeInterims() -> [ClientResponseHead] {
        state.withLock { state in
            defer { state.interims = [] }
            return state.interims
        }
    }

    /// Whether the head of the final response has arrived, or the exchange has ended.
    var hasResponse: Bool { state.withLock { $0.head != nil || $0.result != nil } }

    /// Waits for the end of the exchange.
    /// - Returns: `nil` at the deadline.
    func result(until deadline: Int64) -> TransportResult? { state.wait(until: deadline) { $0.result } }

    /// The result; `nil` if the exchange has not ended.
    var result: TransportResult? { state.withLock { $0.result } }

    /// Collects the content of the response until the exchange has ended, until there are more than `limit` bytes, or
    /// until `isOver` returns true.
    /// - Returns: the content, and the result; `nil` if the exchange has not ended.
    func collect(atMost limit: Int, until isOver: () -> Bool) -> (content: [UInt8], result: TransportResult?) {
        var collected: [UInt8] = []
        while true {
            collected += content.takeAll()
            if collected.count > limit { return (collected, nil) }
            if let result = result(until: SystemClock.monotonicNanoseconds() + Self.collectionInterval) {
                return (collected + content.takeAll(), result)
            }
            if isOver() { return (collected, nil) }
        }
    }

    /// The nanoseconds after which content that has arrived is collected, so that more of it can arrive.
    private static let collectionInterval: Int64 = 20_000_000

    /// The exchange so far, for log and metrics.
    var report: ForwardingReport {
        let state = state.withLock { $0 }
        let end = state.respondedAt ?? SystemClock.monotonicNanoseconds()
        let outcome: ForwardingReport.Outcome =
            if state.head != nil { state.result?.failure?.outcome ?? .answered } else {
                state.result?.failure?.outcome ?? .canceled
            }
        return ForwardingReport(outcome, nanoseconds: end - startedAt)
    }

    // MARK: libcurl's thread

    func receive(_ head: ClientResponseHead) -> BodyDisposition {
        state.withLock { state in
            state.head = head
            state.respondedAt = SystemClock.monotonicNanoseconds()
        }
        // Short content usually follows at once, and its end wakes the waiting thread. Otherwise the thread finds the head
        // at its next check.
        let length = ForwardedMessage.contentLength(head.fields) ?? .max
        if length > ProxiedRequest.maxShortContent { state.notifyAll() }
        return .write(content)
    }

    func received(_ event: TransportEvent) {
        guard case .interim(let head) = event else { return }
        state.withLock { $0.interims.append(head) }
        state.notifyAll()
    }

    func ended(_ result: TransportResult) {
        state.withLock { state in
            state.result = result
            state.exchange = nil
            state.respondedAt = state.respondedAt ?? SystemClock.monotonicNanoseconds()
        }
        content.end()
        state.notifyAll()
    }
}

extension TransportResult {
    /// Whether the request, or a part of it, may have been sent.
    var mayBeSent: Bool { metrics?.requestStart != nil }

    /// The response to the client if the origin sent none.
    var problem: ProblemDetails {
        switch failure?.outcome ?? .lost {
        case .unreachable:
            ProblemDetails(
                status: .badGateway, detail: "The application behind this server cannot be reached. Try again later.",
                code: "origin-unreachable")
        case .timeout:
            ProblemDetails(
                status: .gatewayTimeout, detail: "The application behind this server did not respond in time.",
                code: "origin-timeout")
        case .invalid:
            ProblemDetails(
                status: .badGateway,
                detail: "The response of the application behind this server is not valid HTTP/1.1.",
                code: "origin-response-invalid")
        case .lost, .canceled, .answered:
            ProblemDetails(
                status: .badGateway,
                detail: "The application behind this server ended the connection without a response.",
                code: "origin-connection-lost")
        }
    }
}

extension TransportFailure {
    /// The outcome for log and metrics.
    var outcome: ForwardingReport.Outcome {
        switch self {
        case .resolve, .connect, .connectStalled, .tls, .proxy, .unsupportedURI: .unreachable
        case .stalled: .timeout
        case .protocolViolation, .invalidRequest, .tooManyRedirects: .invalid
        case .cancelled: .canceled
        case .connectionLost, .sourceFailed, .sinkFailed: .lost
        }
    }
}
