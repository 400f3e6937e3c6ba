import HTTPSemantics
import ResumableUpload
import SystemCalls

/// A handler, such as a proxy, that receives a request while it arrives if the request does not use the upload protocol.
/// Requests that use the protocol are received and stored as for every ``TargetHandler``.
package protocol StreamingHandler: TargetHandler {
    /// Begins to process a request that does not use the upload protocol, of any method. The calling thread, which may
    /// block, is that of the connection; it makes all calls for this request, one after the other.
    func begin(_ request: StreamedRequest) -> RequestStep

    /// The names of the fields of a creating request that are stored until its upload is complete.
    func storedFields(of request: Fields) -> [String]
}

/// A request whose content is passed on while it arrives.
package struct StreamedRequest: Sendable {
    /// The request as it was received. Its framing was verified.
    package let head: RequestHead
    /// The path and query as they were received.
    package let reference: String
    package let principal: String
    /// The length of the content in bytes; `nil` if its end is marked by chunks.
    package let length: Int64?
    package let context: ForwardingContext
    let interim: InterimChannel

    /// Sends an interim response, unless the client does not read or does not support it. Call it on the thread of the
    /// connection, before the response.
    package func sendInterim(_ status: Status, _ fields: Fields) {
        _ = interim.forward(ResponseHead(status: status, fields: fields), 1000)
    }
}

/// The limits of uploads at a route, for requests that do not use the upload protocol.
struct StreamBounds {
    private let limits: UploadLimits
    private let dialect: Dialect

    init(_ limits: UploadLimits, _ dialect: Dialect) { (self.limits, self.dialect) = (limits, dialect) }

    private var announcement: String { limits.fieldValue(for: dialect) }

    /// The response to a request with more content than an upload can have; `nil` if the content is not too large.
    func refusal(ofContent count: Int64) -> Response? {
        guard let maxSize = limits.maxSize, count > maxSize else { return nil }
        return Response(
            UploadError.uploadTooLarge(limit: maxSize).problem(in: dialect),
            fields: [UploadFieldName.limit: announcement])
    }

    /// Adds the limits of uploads (draft section 4.1.4) to a response to OPTIONS that has no `Upload-Limit`, because this
    /// server receives the uploads. Other responses are not changed.
    func announced(in step: RequestStep, to method: Method) -> RequestStep {
        switch step {
        case .respond(let response): .respond(announced(in: response, to: method))
        case .forward(let response): .forward(announced(in: response, to: method))
        case .receive, .drop: step
        }
    }

    private func announced(in response: Response, to method: Method) -> Response {
        guard method == .options, !response.fields.contains(UploadFieldName.limit) else { return response }
        var response = response
        response.fields.append(UploadFieldName.limit, announcement)
        return response
    }
}

/// Passes the content of a request to another exchange, as far as the limits of uploads allow.
final class BoundedExchange: Exchange {
    private let exchange: any Exchange
    private let method: Method
    private let bounds: StreamBounds
    /// The number of bytes of content so far.
    private var count: Int64 = 0

    init(_ exchange: any Exchange, _ method: Method, _ bounds: StreamBounds) {
        self.exchange = exchange
        self.method = method
        self.bounds = bounds
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> RequestStep? {
        count += Int64(bytes.count)
        if let refusal = bounds.refusal(ofContent: count) {
            // The other server has got a part of the content. The connection to it ends without the end of the content.
            exchange.end(.interrupted)
            return .respond(refusal)
        }
        return announced(in: exchange.receive(bytes))
    }

    func finish() -> RequestStep { bounds.announced(in: exchange.finish(), to: method) }

    var checkInterval: Int32? { exchange.checkInterval }
    var hasEarlyResponse: Bool { exchange.hasEarlyResponse }
    func check() -> RequestStep? { announced(in: exchange.check()) }

    private func announced(in step: RequestStep?) -> RequestStep? {
        step.map { bounds.announced(in: $0, to: method) }
    }

    func end(_ end: RequestEnd) { exchange.end(end) }
}
