import HTTPSemantics
import StructuredFields
import SystemCalls
import UploadStorage

/// What the daemon remembers of one request between libmicrohttpd's callbacks; used by the connection's thread alone.
final class RequestState {
    enum Stage {
        /// The request line is here, the head may not be.
        case begun
        case receiving(any Exchange)
        /// The answer is known and goes out when the request has ended.
        case answering(Reply)
        /// The answer went out before the content had ended.
        case discarding
        case queued
    }

    let id = RequestID()
    /// As far as it was received; its framing may be refused.
    let received: ReceivedRequest
    private let startedAt = SystemClock.monotonicNanoseconds()
    var stage: Stage = .begun
    var exchange: (any Exchange)?
    /// Where it comes from; `nil` until its head is complete.
    var origin: RequestOrigin?
    /// Whether the connection counts for the client that a proxy reported, not for the proxy.
    var isForwarded = false
    /// Fields that go with every response to this request.
    var responseFields = Fields()
    /// Who asks, where the server knows.
    var principal: String?
    let account = RequestAccount()
    var framing = MessageFraming.chunked
    var isAnswered = false
    /// Whether the connection ends after the answer, with content perhaps still on its way.
    var shouldLinger = false
    /// Bytes of content.
    var contentReceived: Int64 = 0
    /// Those of them that arrived after the answer.
    var discarded: Int64 = 0
    private var status: Status?
    private var code: String?
    /// Bytes of content that the answer has; of content that is produced while it is sent, those so far.
    private var sent: Int64 = 0
    /// Bytes that the client's system had taken on this connection when the response began; `nil` where that cannot be
    /// told.
    var acknowledgedBefore: Int64?

    init(_ received: ReceivedRequest) { self.received = received }

    var head: RequestHead { received.head }

    /// Whether all content has arrived, as far as its length tells before its end is seen.
    var isCompletelyReceived: Bool {
        switch framing {
        case .none: true
        case .length(let length): contentReceived >= length
        case .chunked: false
        }
    }

    /// The reply as it goes out, remembered for the log.
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
        // Problem documents may repeat what strangers sent.
        if reply.fields["Content-Type"] == ProblemDetails.mediaType {
            reply.fields.set("X-Content-Type-Options", "nosniff")
            reply.fields.set("Content-Security-Policy", "sandbox; default-src 'none'")
        }
        // By our clock, which libmicrohttpd's may be behind: a Last-Modified of now must not be later (RFC 9110 section
        // 8.8.2.1).
        reply.fields.set("Date", HTTPDate(secondsSinceEpoch: SystemClock.realtimeSeconds()).serialized)
        return reply
    }

    /// Content whose length was not known is on its way.
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

    /// Bytes of content that went out. Of a response that was interrupted it is what the client's system took.
    private func sent(_ end: RequestEnd, on connection: ConnectionEntry) -> Int64 {
        guard isAnswered else { return 0 }
        guard end == .interrupted, sent > 0 else { return sent }
        guard let acknowledgedBefore, let acknowledged = connection.output.acknowledgedBytes() else { return 0 }
        return min(sent, max(0, acknowledged - acknowledgedBefore))
    }
}

/// What is logged and counted of a request that ended.
struct RequestSummary: Sendable {
    let id: RequestID
    let method: String
    let target: String
    /// `nil` when no answer went out.
    let status: Status?
    let code: String?
    /// Bytes of content received and sent.
    let received: Int64
    let sent: Int64
    let nanoseconds: Int64
    /// Who ended the request before its end; `nil`: nobody.
    let interruption: String?
    let origin: RequestOrigin
    let principal: String?
    let route: String
    /// A hash of the upload's name.
    let upload: String?
    /// Bytes of the upload that are known to be durable.
    let offset: Int64?
    let progress: UploadProgress
    let explanation: UploadExplanation?
    /// Bytes of `received` that were counted before the end.
    let countedReceived: Int64
}
