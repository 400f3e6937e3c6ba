import HTTPSemantics
import HTTPTransport
import SystemCalls
import TransferServer

/// A request that is forwarded while it arrives, and its response. Used on the thread of its connection only.
final class ProxiedRequest: Exchange {
    /// The time in nanoseconds after which a waiting thread checks whether the client is still there.
    static let clientCheckInterval: Int64 = 200_000_000
    /// Content of a response up to this number of bytes is sent together with the head.
    static let maxShortContent: Int64 = 16 << 10

    private let request: StreamedRequest
    private let content: ArrivingContent?
    private let exchange: OriginExchange
    /// The time of the next check whether the client is still there, in monotonic nanoseconds.
    private var nextCheck = SystemClock.monotonicNanoseconds() + clientCheckInterval
    /// Whether the remaining content is discarded, because the origin has responded.
    private var isDiscarding = false

    init(_ request: StreamedRequest, to client: OriginClient, fields: Fields) {
        self.request = request
        // The content of HEAD has no meaning (RFC 9110 section 9.3.2), and libcurl does not send it.
        let hasContent = request.length != 0 && request.head.method != .head
        content = hasContent ? ArrivingContent(length: request.length) : nil
        let method = request.head.method
        let framing: RequestContent =
            if !hasContent { request.head.fields.contains("Content-Length") ? .empty : .none } else {
                request.length.map { .range(from: 0, count: $0) } ?? .remaining(from: 0, atMost: nil)
            }
        exchange = client.start(
            OriginRequest(
                method: method, target: request.reference, fields: fields, content: framing, source: content,
                isRepeatable: method.isIdempotent))
        // The origin gets the head before the client sends content.
        if hasContent { while exchange.isSending, !exchange.hasResponse, proceed() {} }
    }

    /// Continues the exchange, and waits for the origin at most until `deadline`. Returns whether the client still waits for
    /// the response.
    private func proceed(until deadline: Int64 = .max) -> Bool {
        let now = SystemClock.monotonicNanoseconds()
        if now >= nextCheck {
            nextCheck = now + Self.clientCheckInterval
            guard request.context.isAwaited() else { return false }
        }
        exchange.step(until: min(nextCheck, deadline))
        return true
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> RequestStep? {
        guard let content, !isDiscarding else { return nil }
        // All bytes are passed to the kernel before the next ones are read from the client.
        return content.withBytes(bytes) {
            while !exchange.hasResponse {
                guard proceed() else { return .drop }
                sendInterims()
                if !exchange.isSending { return nil }
            }
            return earlyResponse()
        }
    }

    var checkInterval: Int32? { 100 }

    var hasEarlyResponse: Bool {
        guard !isDiscarding else { return false }
        // The exchange continues only when this thread calls it.
        exchange.step(until: 0)
        return exchange.hasInterimOrResponse
    }

    func check() -> RequestStep? {
        sendInterims()
        return exchange.hasResponse ? earlyResponse() : nil
    }

    func finish() -> RequestStep {
        content?.end()
        return response(isEarly: false)
    }

    func end(_ end: RequestEnd) {
        request.context.report = exchange.report
        exchange.cancel()
    }

    /// The response to a request whose content has not ended.
    private func earlyResponse() -> RequestStep? {
        // An error response that does not fit into memory is sent after the remaining content.
        if let status = exchange.head?.status, status.isClientError || status.isServerError, !awaitCompletion() {
            isDiscarding = true
            return request.context.isAwaited() ? nil : .drop
        }
        return response(isEarly: true)
    }

    private func response(isEarly: Bool) -> RequestStep {
        while true {
            switch exchange.progress {
            case .interim(let head): sendInterim(head)
            case .head(let head): return respond(head, isEarly: isEarly)
            case .failed(let result): return .respond(Response(result.problem))
            case nil: guard proceed() else { return .drop }
            }
        }
    }

    private func sendInterims() { while let head = exchange.nextInterim() { sendInterim(head) } }

    private func sendInterim(_ head: ClientResponseHead) {
        request.sendInterim(head.status, ForwardedMessage.responseFields(head.fields))
    }

    private func respond(_ head: ClientResponseHead, isEarly: Bool) -> RequestStep {
        var response = Response(status: head.status, fields: ForwardedMessage.responseFields(head.fields))
        let length = ForwardedMessage.contentLength(head.fields)
        if request.head.method == .head || head.status.isContentForbidden {
            // The length that the content would have (RFC 9110 section 8.6). If the origin does not state it in a 304
            // response, libmicrohttpd adds the length 0, which caches ignore (RFC 9111 section 3.2).
            if request.head.method == .head || head.status == .notModified && length != nil {
                response.content = .stream(OriginContent(exchange, request, length))
            }
            return .forward(response)
        }
        if isEarly && !head.status.isClientError && !head.status.isServerError {
            // The origin may need more of the request before it can complete this response. This server cannot send a
            // response while it receives the request.
            guard awaitCompletion() else { return .respond(Response(Self.fullDuplex)) }
        }
        if let length, length <= Self.maxShortContent, awaitCompletion(within: .milliseconds(2)) {
            response.content = .bytes(exchange.readAll())
        } else {
            response.content = .stream(OriginContent(exchange, request, length))
        }
        return .forward(response)
    }

    /// Waits until the response is complete. Returns false if the exchange fails, if more of the response arrives than fits
    /// into memory, or if the response is not complete in time.
    private func awaitCompletion(within limit: Duration = .seconds(3600)) -> Bool {
        let end = SystemClock.deadline(in: limit)
        while true {
            if let result = exchange.result { return result.failure == nil && result.isContentComplete }
            guard !exchange.isFull, SystemClock.monotonicNanoseconds() < end, proceed(until: end) else { return false }
        }
    }

    private static let fullDuplex = ProblemDetails(
        status: .notImplemented,
        detail:
            "The application sends a successful response before it has received the complete request, which this server does"
            + " not support.",
        code: "full-duplex-unsupported")
}

/// The content of an origin's response.
final class OriginContent: ContentStream, @unchecked Sendable {
    // Only the thread of the connection uses this object.
    let length: Int64?
    private let exchange: OriginExchange
    private let isAwaited: @Sendable () -> Bool

    init(_ exchange: OriginExchange, _ request: StreamedRequest, _ length: Int64?) {
        self.exchange = exchange
        self.length = length
        isAwaited = request.context.isAwaited
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) throws -> Int {
        while true {
            let count = exchange.read(into: buffer)
            if count > 0 { return count }
            if let result = exchange.result {
                if let failure = result.failure { throw IncompleteResponse(failure: failure) }
                // An early error response can end before its last chunk, because the origin does not read the request.
                let isError = exchange.head.map { $0.status.isClientError || $0.status.isServerError } ?? false
                guard result.isContentComplete || isError else {
                    throw IncompleteResponse(failure: .protocolViolation("The response is incomplete."))
                }
                return 0
            }
            let deadline = SystemClock.monotonicNanoseconds() + ProxiedRequest.clientCheckInterval
            guard exchange.step(until: deadline) || isAwaited() else {
                throw IncompleteResponse(failure: .canceled)
            }
        }
    }

    deinit { exchange.cancel() }
}

/// The origin has not sent all of its response.
private struct IncompleteResponse: Error, CustomStringConvertible {
    let failure: TransportFailure
    var description: String { "the origin did not complete its response: \(failure)" }
}
