import HTTPSemantics
import ResumableUpload
import SystemCalls

/// A handler, such as a proxy, that receives a request while it arrives if the request does not use the upload protocol.
/// Requests that use the protocol are received and stored as for every ``TargetHandler``.
package protocol StreamingHandler: TargetHandler {
    /// Begins to process a request that does not use the upload protocol, of any method. The calling thread, which may
    /// block, is that of the connection; it makes all calls for this request, one after the other.
    func begin(_ request: StreamedRequest) -> StreamedStep

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

/// The next step of a streamed request.
package enum StreamedStep {
    /// Pass the content and its end to this stream.
    case receive(any RequestStream)
    /// Send this response of the handler; content is not needed.
    case respond(Response)
    /// Send this response of another server without further fields; content is not needed.
    case forward(Response)
    /// Close the connection without a response.
    case drop
}

/// Receives the content of one request. After a call of `finish`, or after a result other than `nil`, only `end`
/// follows.
package protocol RequestStream: AnyObject {
    /// Handles the next bytes of content, which are valid only during the call.
    /// - Returns: `nil` to continue.
    func receive(_ bytes: UnsafeRawBufferPointer) -> StreamedStep?
    /// Whether the other server has sent an interim or final response, or the connection to it has ended. The
    /// response can be sent to the client before the content of the request has ended.
    var hasEarlyResponse: Bool { get }
    /// Sends the interim responses that have arrived.
    /// - Returns: `nil` to continue, or a response that has arrived before the end of the content.
    func check() -> StreamedStep?
    /// Handles the end of the content and waits for the response.
    func finish() -> StreamedStep
    /// Called at the end of the request, and before that if the content is not received any more. It may be called
    /// twice.
    func end()
}

extension RequestStream {
    package var hasEarlyResponse: Bool { false }
    package func check() -> StreamedStep? { nil }
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
    func announced(in response: Response, to method: Method) -> Response {
        guard method == .options, !response.fields.contains(UploadFieldName.limit) else { return response }
        var response = response
        response.fields.append(UploadFieldName.limit, announcement)
        return response
    }
}

/// Passes the content of a request to a stream.
final class StreamedExchange: Exchange {
    private let stream: any RequestStream
    private let request: RequestContext
    private let bounds: StreamBounds
    /// The number of bytes of content so far.
    private var count: Int64 = 0

    init(_ stream: any RequestStream, _ request: RequestContext, _ bounds: StreamBounds) {
        self.stream = stream
        self.request = request
        self.bounds = bounds
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> NextStep {
        count += Int64(bytes.count)
        if let refusal = bounds.refusal(ofContent: count) {
            // The other server has got a part of the content. The connection to it ends without the end of the content.
            stream.end()
            return .respond(refusal)
        }
        return stream.receive(bytes).map(step) ?? .proceed
    }

    func finish() -> NextStep { step(stream.finish()) }

    var checkInterval: Int32? { 100 }
    var hasEarlyResponse: Bool { stream.hasEarlyResponse }
    func check() -> NextStep { stream.check().map(step) ?? .proceed }

    private func step(_ step: StreamedStep) -> NextStep {
        switch step {
        case .receive: return .proceed
        case .respond(let response): return .respond(bounds.announced(in: response, to: request.method))
        case .forward(let response):
            request.isForwarded = true
            return .respond(bounds.announced(in: response, to: request.method))
        case .drop: return .drop
        }
    }

    func end(_ end: RequestEnd) { stream.end() }
}
