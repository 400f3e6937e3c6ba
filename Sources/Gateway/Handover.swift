import HTTPSemantics
import HTTPTransport
import SystemCalls
import TransferServer
import UploadStorage

/// Sends one complete upload to the origin of a route. Blocks the thread of the connection.
struct Handover {
    private static let firstPause: Int64 = 100_000_000
    private static let maxPause: Int64 = 1_000_000_000

    private let handler: GatewayHandler
    private let upload: ReceivedUpload
    private var route: Route { handler.route }

    init(_ handler: GatewayHandler, _ upload: ReceivedUpload) {
        self.handler = handler
        self.upload = upload
    }

    private enum Outcome {
        case answered(Response, setCookie: [String])
        /// The origin cannot be reached, or has responded with 503: the request had no effect.
        case unavailable(reason: String, retryAfter: Duration?)
        /// The request was sent, and there is no response.
        case unknown(reason: String)
    }

    func run() throws -> Response {
        let end = SystemClock.deadline(in: route.retryTime)
        var pause = Self.firstPause
        while true {
            try markEffect(true)
            switch try send() {
            case .answered(let response, let setCookie):
                for value in setCookie { upload.unstoredFields.append("Set-Cookie", value) }
                return response
            case .unknown where !route.isRepeatable: return GatewayHandler.unknownOutcome
            case .unknown(let reason):
                throw TargetUnavailable("\(route.origin) did not respond: \(reason)", retryAfter: .seconds(1))
            case .unavailable(let reason, let wait):
                try markEffect(false)
                let now = SystemClock.monotonicNanoseconds()
                let next = now + max(pause, wait?.nanoseconds ?? 0)
                guard next < end, self.pause(until: next) else {
                    throw TargetUnavailable("\(route.origin): \(reason)", retryAfter: wait ?? .seconds(1))
                }
                pause = min(2 * pause, Self.maxPause)
            }
        }
    }

    /// Records durably whether the request may have an effect, unless it can be repeated anyway.
    private func markEffect(_ mayHaveEffect: Bool) throws(TargetUnavailable) {
        guard !route.isRepeatable else { return }
        do throws(StoreError) {
            if mayHaveEffect { try upload.beginEffect() } else { try upload.withdrawEffect() }
        } catch {
            throw TargetUnavailable("the state of the upload cannot be stored: \(error)", retryAfter: .seconds(5))
        }
    }

    /// Waits, unless the client has gone or the server stops. Returns whether the time has passed.
    private func pause(until time: Int64) -> Bool {
        while SystemClock.monotonicNanoseconds() < time {
            guard upload.isAwaited(), !Task.isCancelled else { return false }
            SystemClock.pause(nanoseconds: min(50_000_000, max(time - SystemClock.monotonicNanoseconds(), 0)))
        }
        return true
    }

    private func send() throws -> Outcome {
        let sink = ContentPipe(length: nil)
        let exchange = handler.client.start(
            upload.method, upload.target.reference, fields,
            content: upload.length == 0 ? .empty : .range(from: 0, count: upload.length),
            source: upload.length == 0 ? nil : UploadContent(upload), isRepeatable: false,
            needsNewConnection: !route.isRepeatable, sink: sink)
        // The source of a running exchange uses the upload.
        defer {
            exchange.cancel()
            while exchange.result(until: SystemClock.monotonicNanoseconds() + ProxiedRequest.checkInterval) == nil {}
        }
        var content: [UInt8] = []
        while true {
            content += sink.takeAll()
            if content.count > Route.maxStoredContent, let head = exchange.head { return answered(head, content) }
            if let result = exchange.result(until: SystemClock.monotonicNanoseconds() + 50_000_000) {
                content += sink.takeAll()
                return outcome(result, content)
            }
            // A request that was sent may have an effect, so this is the interruption of a call, not its failure.
            if Task.isCancelled { throw CancellationError() }
        }
    }

    private func outcome(_ result: TransportResult, _ content: [UInt8]) -> Outcome {
        guard let head = result.head, result.failure == nil, result.isContentComplete || !isDelimited(head) else {
            let reason = result.failure.map { "\($0)" } ?? "the response is incomplete"
            return result.mayBeSent ? .unknown(reason: reason) : .unavailable(reason: reason, retryAfter: nil)
        }
        return answered(head, content)
    }

    /// The outcome of a response that is complete, or too large.
    private func answered(_ head: ClientResponseHead, _ content: [UInt8]) -> Outcome {
        if head.status == .serviceUnavailable {
            let seconds = head.fields["Retry-After"].flatMap { Int64($0) }.map { min(max($0, 1), 3600) }
            return .unavailable(reason: "the response has status 503", retryAfter: seconds.map { .seconds($0) })
        }
        guard content.count <= Route.maxStoredContent else { return .answered(Self.responseTooLarge, setCookie: []) }
        var fields = ForwardedMessage.responseFields(head.fields)
        // The origin did not use the upload protocol. Its fields describe the upload on this server.
        for name in fields.map(\.name) where name.lowercased().hasPrefix("upload-") { fields.remove(name) }
        let setCookie = fields.values("Set-Cookie")
        fields.remove("Set-Cookie")
        return .answered(Response(status: head.status, fields: fields, content: content), setCookie: setCookie)
    }

    /// Whether the head has the length of the content.
    private func isDelimited(_ head: ClientResponseHead) -> Bool {
        ForwardedMessage.contentLength(head.fields) != nil && !head.status.forbidsContent
    }

    /// The fields of the request: those of the creation, and the credentials of the request that completes the upload.
    private var fields: Fields {
        var fields = upload.fields
        let forwarded = ForwardedMessage.requestFields(upload.forwarding.requestFields, isUpload: true)
        for field in upload.forwarding.credentials where forwarded.contains(field.name) {
            fields.append(field.name, field.value)
        }
        fields = handler.outgoing(
            ForwardedMessage.requestFields(fields, isUpload: true), upload.forwarding, principal: upload.principal)
        // Digests of other algorithms were not verified.
        if let digest = DigestField(fieldLines: upload.fields.values("Repr-Digest")) {
            fields.append("Onward-Digest", digest.serialized)
        }
        fields.append("Onward-Upload", upload.idempotencyKey)
        if route.isRepeatable { fields.append("Idempotency-Key", "\"\(upload.idempotencyKey)\"") }
        return fields
    }

    private static let responseTooLarge = Response(
        ProblemDetails(
            status: .badGateway,
            detail: "The application processed the upload, but its response is larger than 1 MiB and cannot be stored.",
            code: "origin-response-too-large"))
}

/// The bytes of a complete upload, which libcurl's thread reads.
private final class UploadContent: UploadSource {
    private let upload: ReceivedUpload
    let length: Int64?

    init(_ upload: ReceivedUpload) {
        self.upload = upload
        length = upload.length
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SourceError) -> Int {
        do { return try upload.read(into: buffer, at: offset) } catch { throw .failed(error) }
    }

    func acknowledged(upTo offset: Int64) {}
}
