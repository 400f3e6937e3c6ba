import HTTPSemantics
import HTTPTransport
import SystemCalls
import TransferServer

/// Sends one complete request to an origin and waits for the response, which has to fit into memory. Blocks its thread.
struct OriginDelivery {
    enum Outcome {
        case responded(Response, setCookie: [String])
        /// The origin has responded, but with more content than ``Route/maxStoredContent``.
        case responseTooLarge(Status)
        /// The origin cannot be reached, or has responded with 503: the request had no effect.
        case unavailable(reason: String, retryAfter: Duration?)
        /// The request may have been sent, and there is no complete response.
        case unknown(reason: String)
    }

    private let client: OriginClient
    private let request: OriginRequest

    init(_ client: OriginClient, _ request: OriginRequest) {
        self.client = client
        self.request = request
    }

    /// - Returns: `nil` if the delivery was canceled. The request may have been sent.
    /// - Parameter report: called at the end of the exchange.
    func run(isCanceled: () -> Bool, report: (ForwardingReport) -> Void = { _ in }) -> Outcome? {
        let exchange = client.start(request)
        defer {
            report(exchange.report)
            exchange.cancel()
        }
        let (content, result) = exchange.collect(atMost: Route.maxStoredContent, until: isCanceled)
        if let result { return outcome(result, content, isPossiblySent: exchange.isPossiblySent) }
        guard content.count > Route.maxStoredContent, let head = exchange.head else { return nil }
        return responded(head, content)
    }

    private func outcome(_ result: TransportResult, _ content: [UInt8], isPossiblySent: Bool) -> Outcome {
        guard let head = result.head, result.failure == nil, result.isContentComplete else {
            let reason = result.failure.map { "\($0)" } ?? "the response is incomplete"
            return isPossiblySent ? .unknown(reason: reason) : .unavailable(reason: reason, retryAfter: nil)
        }
        return responded(head, content)
    }

    /// The outcome of a response that is complete, or too large.
    private func responded(_ head: ClientResponseHead, _ content: [UInt8]) -> Outcome {
        if head.status == .serviceUnavailable {
            let wait = ForwardedMessage.retryAfter(head.fields).map { max($0, .seconds(1)) }
            return .unavailable(reason: "the response has status 503", retryAfter: wait)
        }
        guard content.count <= Route.maxStoredContent else { return .responseTooLarge(head.status) }
        var fields = ForwardedMessage.responseFields(head.fields)
        // The origin did not use the upload protocol. Its fields describe the upload on this server.
        for name in fields.map(\.name) where name.lowercased().hasPrefix("upload-") { fields.remove(name) }
        let setCookie = fields.values("Set-Cookie")
        fields.remove("Set-Cookie")
        return .responded(Response(status: head.status, fields: fields, content: content), setCookie: setCookie)
    }

    /// The final response to the client if that of the origin is too large.
    static let responseTooLarge = Response(
        ProblemDetails(
            status: .badGateway,
            detail: "The application processed the upload, but its response is larger than 1 MiB and cannot be stored.",
            code: "origin-response-too-large"))
}

extension OriginDelivery.Outcome {
    /// The outcome if the application has moved the file of the request (`isMoved`), or has not. If it has, the request may
    /// have had an effect, whatever the status of the response is.
    func considering(isMoved: Bool) -> Self {
        guard isMoved, case .unavailable(let reason, _) = self else { return self }
        return .unknown(reason: "\(reason), but the application has moved the file")
    }

    /// The outcome for the operator in a sentence.
    var summary: String {
        switch self {
        case .responded(let response, _): "the application responded with status \(response.status)"
        case .responseTooLarge(let status):
            "the application responded with status \(status), and more than 1 MiB of content"
        case .unavailable(let reason, _): "the application did not process the request: \(reason)"
        case .unknown(let reason): "the outcome is still unknown: \(reason)"
        }
    }
}
