import HTTPSemantics
import StructuredFields
import SystemCalls
import UploadStorage

/// The state of one request between the callbacks of libmicrohttpd; used only by the thread of the connection.
final class RequestState {
    enum Stage {
        /// The request line has arrived; the head may be incomplete.
        case begun
        case receiving(any Exchange)
        /// The response is known, and is sent when the request has ended.
        case answering(Reply)
        /// The response was sent before the content had ended.
        case discarding
        case queued
    }

    let id = RequestID()
    /// The request as it was received; its framing can be rejected.
    let received: ReceivedRequest
    private let startedAt = SystemClock.monotonicNanoseconds()
    var stage: Stage = .begun
    var exchange: (any Exchange)?
    /// The origin of the request; `nil` until its head is complete.
    var origin: RequestOrigin?
    /// Whether the connection is counted for the client that a proxy reported, instead of the proxy.
    var isForwarded = false
    /// The fields of every response to this request.
    var responseFields = Fields()
    /// The principal that sent the request; `nil` if it is unknown.
    var principal: String?
    let account = RequestAccount()
    var framing = MessageFraming.chunked
    var isAnswered = false
    /// Whether to keep reading for a moment after the response, because content may still arrive.
    var shouldLinger = false
    /// The bytes of content received.
    var contentReceived: Int64 = 0
    /// The bytes of content that arrived after the response.
    var discarded: Int64 = 0
    private var status: Status?
    private var code: String?
    /// The bytes of content in the response; if it is produced while it is sent, the bytes so far.
    private var sent: Int64 = 0
    /// The bytes that the client's system had acknowledged on this connection when the response began; `nil` if that is
    /// unknown.
    var acknowledgedBefore: Int64?

    init(_ received: ReceivedRequest) { self.received = received }

    var head: RequestHead { received.head }

    /// Whether all content has arrived, if its length is known before its end.
    var isCompletelyReceived: Bool {
        switch framing {
        case .none: true
        case .length(let length): contentReceived >= length
        case .chunked: false
        }
    }

    /// Adds the common fields to the reply, and stores its status for the log.
    func complete(_ reply: Reply) -> Reply {
        status = reply.status
        code = reply.code
        sent = head.method == .head ? 0 : reply.contentLength ?? 0
        if reply.status.isClientError || reply.status.isServerError {
            account.explanation?.refusal = reply.code ?? "status \(reply.status)"
        }
        var reply = reply
        if account.wantsExplanation, let explanation = account.explanation,
            let value = try? Item(.string(explanation.sentence)).serialized()
        {
            reply.fields.set(ServerFieldName.explain, value)
        }
        if let base = origin?.base { reply.fields = base.rebased(reply.fields) }
        for field in responseFields { reply.fields.append(field.name, field.value) }
        // Problem documents can contain untrusted input.
        if reply.fields["Content-Type"] == ProblemDetails.mediaType {
            reply.fields.set("X-Content-Type-Options", "nosniff")
            reply.fields.set("Content-Security-Policy", "sandbox; default-src 'none'")
        }
        // The clock of libmicrohttpd can be late, and Last-Modified must not be later than Date (RFC 9110 section
        // 8.8.2.1).
        reply.fields.set("Date", HTTPDate(secondsSinceEpoch: SystemClock.realtimeSeconds()).serialized)
        return reply
    }

    /// Counts sent content of unknown length.
    func countStreamed(_ bytes: Int) { sent += Int64(bytes) }

    func summary(_ end: RequestEnd, of connection: ConnectionEntry) -> RequestSummary {
        RequestSummary(
            id: id, method: head.method.rawValue, target: head.target, status: isAnswered ? status : nil,
            code: code, received: contentReceived, sent: sent(end, on: connection),
            nanoseconds: SystemClock.monotonicNanoseconds() - startedAt,
            interruption: end == .interrupted ? connection.closeReason?.rawValue ?? "client" : nil,
            origin: origin ?? RequestOrigin(client: connection.peer), principal: principal, route: account.route,
            upload: account.upload?.description, offset: account.offset, progress: account.progress,
            explanation: account.explanation, countedReceived: account.countedReceived)
    }

    /// The bytes of content that were sent. For an interrupted response, the bytes that the client's system
    /// acknowledged.
    private func sent(_ end: RequestEnd, on connection: ConnectionEntry) -> Int64 {
        guard isAnswered else { return 0 }
        guard end == .interrupted, sent > 0 else { return sent }
        guard let acknowledgedBefore, let acknowledged = connection.output.acknowledgedBytes() else { return 0 }
        return min(sent, max(0, acknowledged - acknowledgedBefore))
    }
}

/// The data of a finished request for log and metrics.
struct RequestSummary: Sendable {
    let id: RequestID
    let method: String
    let target: String
    /// `nil` if no response was sent.
    let status: Status?
    let code: String?
    /// The bytes of content received and sent.
    let received: Int64
    let sent: Int64
    let nanoseconds: Int64
    /// Why the request was interrupted; `nil` if it was not.
    let interruption: String?
    let origin: RequestOrigin
    let principal: String?
    let route: String
    /// A hash of the upload's ID.
    let upload: String?
    /// The durable offset of the upload; `nil` if it is unknown.
    let offset: Int64?
    let progress: UploadProgress
    let explanation: UploadExplanation?
    /// The part of `received` that the metrics have already counted.
    let countedReceived: Int64
}
