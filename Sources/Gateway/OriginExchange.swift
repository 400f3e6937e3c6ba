import HTTPSemantics
import HTTPTransport
import SystemCalls
import TransferServer

/// The connections to one origin.
final class OriginClient: Sendable {
    private let transport = BlockingTransport()
    private let settings: TransportSettings
    let origin: Origin
    /// The maximum time in which no byte moves between this program and the origin.
    let timeout: Duration

    init(_ origin: Origin, timeout: Duration) {
        self.origin = origin
        self.timeout = timeout
        settings = origin.settings(connectTimeout: min(timeout, .seconds(10)))
    }

    /// Starts a request. The calling thread continues it with the functions of the exchange.
    func start(_ request: OriginRequest) -> OriginExchange {
        var transport = TransportRequest(
            uri: origin.url, method: request.method, fields: request.fields, content: request.content,
            source: request.source, stallTimeout: timeout, settings: settings, receive: { _ in .abort })
        transport.target = request.target
        transport.isRepeatable = request.isRepeatable
        transport.isNewConnectionNeeded = request.isNewConnectionNeeded
        return OriginExchange(self.transport.start(transport, content: request.source as? ArrivingContent))
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
    var isNewConnectionNeeded = false
}

/// One request to an origin and its response. One thread at a time uses it.
final class OriginExchange {
    private let startedAt = SystemClock.monotonicNanoseconds()
    private let exchange: BlockingExchange
    /// The time of the final head or of the end, in monotonic nanoseconds.
    private var respondedAt: Int64?

    init(_ exchange: BlockingExchange) {
        self.exchange = exchange
        noteResponse()
    }

    /// Ends the exchange, unless it has ended. The source of the request is not read any more.
    func cancel() {
        exchange.cancel()
        noteResponse()
    }

    /// Continues the exchange: does everything that is possible now, or waits until something is possible.
    /// - Parameter deadline: the end of the wait, in monotonic nanoseconds.
    /// - Returns: false if the deadline has passed and the exchange has not ended.
    @discardableResult
    func step(until deadline: Int64) -> Bool {
        defer { noteResponse() }
        return exchange.step(until: deadline)
    }

    private func noteResponse() {
        if respondedAt == nil, hasResponse { respondedAt = SystemClock.monotonicNanoseconds() }
    }

    /// Whether bytes of the request wait until they can be passed to the kernel.
    var isSending: Bool { exchange.isSending }

    /// An event of the exchange.
    enum Progress {
        case interim(ClientResponseHead)
        case head(ClientResponseHead)
        /// The exchange has ended without the head of a final response.
        case failed(TransportResult)
    }

    /// The next interim response, the head of the final response, or the end; `nil` if nothing has happened.
    var progress: Progress? {
        if let interim = nextInterim() { return .interim(interim) }
        if let head { return .head(head) }
        return result.map { .failed($0) }
    }

    /// Removes and returns the first interim response that was not returned before.
    func nextInterim() -> ClientResponseHead? { exchange.nextInterim() }

    /// The head of the final response; `nil` if it has not arrived.
    var head: ClientResponseHead? { exchange.head }

    /// Whether a response has arrived, interim or final, or the exchange has ended.
    var hasInterimOrResponse: Bool { exchange.hasInterim || hasResponse }

    /// Whether the head of the final response has arrived, or the exchange has ended.
    var hasResponse: Bool { exchange.head != nil || exchange.result != nil }

    /// The result; `nil` if the exchange has not ended.
    var result: TransportResult? { exchange.result }

    /// Continues the exchange until its end.
    /// - Returns: `nil` at the deadline, in monotonic nanoseconds.
    func result(until deadline: Int64) -> TransportResult? {
        while result == nil, step(until: deadline) {}
        return result
    }

    /// Whether the request, or a part of it, may have been sent. Valid after the end.
    var isPossiblySent: Bool { exchange.isPossiblySent }

    /// Whether so much content has arrived that no more is received before some of it is read.
    var isFull: Bool { exchange.isFull }

    /// Reads content that has arrived.
    /// - Returns: the number of bytes; 0 if there are none.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int { exchange.read(into: buffer) }

    /// Reads all content that has arrived.
    func readAll() -> [UInt8] { exchange.readAll() }

    /// Continues the exchange and collects the content of the response until the exchange has ended, until there are more
    /// than `limit` bytes, or until `isOver` returns true.
    /// - Returns: the content, and the result; `nil` if the exchange has not ended.
    func collect(atMost limit: Int, until isOver: () -> Bool) -> (content: [UInt8], result: TransportResult?) {
        var collected: [UInt8] = []
        while true {
            step(until: SystemClock.monotonicNanoseconds() + Self.checkInterval)
            let content = readAll()
            if collected.isEmpty { collected = content } else { collected += content }
            if collected.count > limit { return (collected, nil) }
            if let result { return (collected, result) }
            if isOver() { return (collected, nil) }
        }
    }

    /// The maximum number of nanoseconds between two checks whether a collection is over.
    private static let checkInterval: Int64 = 20_000_000

    /// The exchange so far, for log and metrics.
    var report: ForwardingReport {
        let end = respondedAt ?? SystemClock.monotonicNanoseconds()
        let failure = result?.failure?.outcome
        return ForwardingReport(failure ?? (head == nil ? .canceled : .answered), nanoseconds: end - startedAt)
    }
}

extension TransportResult {
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
        case .canceled: .canceled
        case .connectionLost, .sourceFailed, .sinkFailed: .lost
        }
    }
}
