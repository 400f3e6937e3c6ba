import Digests
import FoundationEssentials
import HTTPSemantics
import ResumableUpload
import StructuredFields
import SystemCalls
import UploadStorage

/// One request, from its first line until its end: what was received, how it is served, and what log, metrics and
/// explanations report. Only the thread of the connection uses it.
final class RequestContext {
    enum Stage {
        /// The request line has arrived; the head may be incomplete.
        case begun
        /// ``exchange`` receives the content.
        case receiving
        /// The response is known, and is sent when the content of the request has ended.
        case responding(Response)
        /// The response was sent before the content had ended.
        case discarding
        /// The response was passed to libmicrohttpd.
        case queued
    }

    let id = RequestID()
    /// The request as it was received; its framing can be rejected.
    private(set) var received: ReceivedRequest
    let connection: ConnectionEntry
    let startedAt = SystemClock.monotonicNanoseconds()

    // MARK: From the head

    /// The framing of the content. The initial value is replaced when the head is accepted.
    var framing = MessageFraming.chunked
    /// The client, as a trusted proxy reports it. Before the head is accepted: the peer of the connection.
    var origin: RequestOrigin
    var interim = InterimChannel(send: nil, base: PublicBase())
    /// Waits a moment for the remaining bytes of short content, and returns whether all content has arrived. Can be
    /// called while the request begins.
    var receiveShortContent = { false }
    /// Whether the connection is counted for the client that a proxy reported, instead of the proxy.
    var isCountedForClient = false
    /// The data about the server to which the request is forwarded; `nil` if it is not forwarded.
    var forwarding: ForwardingContext?
    /// The prefix of the paths of this server in fields of the response: the public base is added to these paths. If
    /// the request is forwarded, other paths belong to the application.
    var ownPath = "/"
    /// The check of the file before its publication; `nil` if there was none.
    var check: CheckReport?
    /// Whether another server responds to this request. No field is added to its response, except a
    /// missing `Date`.
    private var isForwarded = false
    /// Fields that are added to every response to this request, such as those of CORS.
    var responseFields = Fields()
    /// The principal that sent the request; `nil` if it is unknown.
    var principal: String?

    // MARK: For log, metrics and explanations

    /// The route label of the metrics; see ``RequestRoute/label``.
    var route = "other"
    /// The upload of the request.
    var upload: UploadID?
    /// The durable offset of the upload; `nil` if it is unknown.
    var offset: Int64?
    var progress = UploadProgress()
    /// The explanation of the decisions; `nil` if the request has no content for an upload or a target.
    var explanation: UploadExplanation?
    /// The bytes of content that the metrics have already counted.
    var countedReceived: Int64 = 0

    // MARK: Progress

    var stage = Stage.begun
    var exchange: (any Exchange)?
    /// The bytes of content received.
    var contentReceived: Int64 = 0
    /// The bytes of content that arrived after the response.
    var discarded: Int64 = 0
    /// The data of the response; `nil` before the response is prepared.
    var sent: SentResponse?
    /// Whether the thread of the connection lets other threads run first; see `WorkerThread.setYieldsToOthers`.
    var shouldYield = false
    /// Whether to keep reading for a moment after the response, because content may still arrive.
    var shouldLinger = false

    init(_ received: ReceivedRequest, on connection: ConnectionEntry) {
        self.received = received
        self.connection = connection
        origin = RequestOrigin(client: connection.peer)
    }

    var head: RequestHead { received.head }
    var method: Method { head.method }
    var fields: Fields { head.fields }

    /// Removes the cookie of the session from the fields: no handler gets it.
    func removeSessionCookie() {
        if fields.contains("Cookie") { received.head.fields = SessionCookie.removed(from: fields) }
    }

    /// Whether the client sent the request over https, according to a trusted proxy or otherwise to the connection.
    var isSecure: Bool { origin.scheme.map { $0 == "https" } ?? (connection.credentials != nil) }
    /// Whether the end of the connection may be the end of the content (RFC 1945 section 7.2). A server cannot
    /// distinguish that from an interruption.
    var isLengthMissing: Bool { head.version < .http11 && framing == .none }
    var expectation: Expectation { Expectation(fields: fields, version: head.version) }
    /// Whether content follows the head.
    var isContentExpected: Bool {
        switch framing {
        case .none, .length(0): false
        default: true
        }
    }

    /// Whether all content has arrived, if its length is known before its end.
    var isCompletelyReceived: Bool {
        switch framing {
        case .none: true
        case .length(let length): contentReceived >= length
        case .chunked: false
        }
    }
}

/// The data of a response for log and metrics.
struct SentResponse {
    let status: Status
    /// The stable code of an error.
    let code: String?
    /// The number of bytes of content. If the content is produced while it is sent, the number of bytes so far.
    var bytes: Int64
    /// Whether the response was passed to the connection.
    var isQueued = false
    /// The bytes that the client's system had acknowledged on this connection when the response began; `nil` if that is
    /// unknown.
    var acknowledgedBefore: Int64?
}

extension RequestContext {
    /// Sends the URL of a new upload in a 104 response.
    /// - Parameter isFollowed: whether all content has arrived. The client then has nothing to send for which it needs the
    ///   URL.
    @discardableResult
    func announce(_ head: ResponseHead, isFollowed: Bool) -> SocketOutput.Outcome {
        let outcome = interim.send(head, timeout: 1000, isFollowed: isFollowed)
        switch outcome {
        case .sent: explanation?.announcements += 1
        case .notWritable: explanation?.unwritable += 1
        case .broken: break
        }
        return outcome
    }

    /// The response of a step; `nil` if the step has none.
    func response(of step: RequestStep) -> Response? {
        switch step {
        case .respond(let response): return response
        case .forward(let response):
            isForwarded = true
            return response
        case .receive, .drop: return nil
        }
    }

    /// Adds the common fields to the response, and keeps its status for the log.
    func complete(_ response: Response) -> Response {
        var response = response
        let bytes = method == .head || response.status.isContentForbidden ? 0 : response.content.length ?? 0
        if isForwarded {
            sent = SentResponse(status: response.status, code: nil, bytes: bytes)
            if !response.fields.contains("Date") { response.fields.append("Date", Self.date) }
            return response
        }
        let code = ProblemCode(of: response)?.code
        if response.status.isClientError || response.status.isServerError {
            explanation?.refusal = code ?? "status \(response.status)"
        }
        sent = SentResponse(status: response.status, code: code, bytes: bytes)
        if fields.uploadBoolean(ServerFieldName.explain) == true, let explanation,
            let value = try? Item(.string(explanation.sentence)).serialized()
        {
            response.fields.set(ServerFieldName.explain, value)
        }
        response.fields = origin.base.rebased(response.fields, below: ownPath)
        for field in responseFields { response.fields.append(field.name, field.value) }
        // Problem documents can contain untrusted input.
        if response.fields["Content-Type"] == ProblemDetails.mediaType {
            response.fields.set("X-Content-Type-Options", "nosniff")
            response.fields.set("Content-Security-Policy", "sandbox; default-src 'none'")
        }
        if response.status == .serviceUnavailable, !response.fields.contains("Retry-After") {
            response.fields.append("Retry-After", "1")
        }
        response.fields.set("Date", Self.date)
        return response
    }

    /// The current time. The clock of libmicrohttpd can be late, and Last-Modified must not be later than Date (RFC 9110
    /// section 8.8.2.1).
    private static var date: String { HTTPDate(secondsSinceEpoch: SystemClock.realtimeSeconds()).serialized }

    func summary(_ end: RequestEnd) -> RequestSummary {
        RequestSummary(
            id: id, method: method.rawValue, target: head.target, status: sent?.isQueued == true ? sent?.status : nil,
            code: sent?.code, received: contentReceived, sent: sentBytes(end),
            nanoseconds: SystemClock.monotonicNanoseconds() - startedAt,
            interruption: end == .interrupted ? connection.closeReason?.rawValue ?? "client" : nil,
            origin: origin, principal: principal, route: route, upload: upload, offset: offset,
            progress: progress, explanation: explanation, forwarding: forwarding?.report, check: check,
            countedReceived: countedReceived)
    }

    /// The bytes of content that were sent. For an interrupted response, the bytes that the client's system
    /// acknowledged.
    private func sentBytes(_ end: RequestEnd) -> Int64 {
        guard let sent, sent.isQueued else { return 0 }
        guard end == .interrupted, sent.bytes > 0 else { return sent.bytes }
        guard let before = sent.acknowledgedBefore, let acknowledged = connection.output.acknowledgedBytes() else {
            return 0
        }
        return min(sent.bytes, max(0, acknowledged - before))
    }
}

/// The data of a finished request for log and metrics.
struct RequestSummary: Sendable {
    let id: RequestID
    let method: String
    let target: String
    /// The status of the response; `nil` if no response was sent.
    let status: Status?
    let code: String?
    /// The bytes of content received and sent.
    let received: Int64
    let sent: Int64
    let nanoseconds: Int64
    /// The reason why the request was interrupted; `nil` if it was not.
    let interruption: String?
    let origin: RequestOrigin
    let principal: String?
    let route: String
    /// The upload of the request. The log shows only a hash of its ID.
    let upload: UploadID?
    /// The durable offset of the upload; `nil` if it is unknown.
    let offset: Int64?
    let progress: UploadProgress
    let explanation: UploadExplanation?
    /// The exchange with the server to which the request was forwarded; `nil` if there was none.
    let forwarding: ForwardingReport?
    /// The check of the file before its publication; `nil` if there was none.
    let check: CheckReport?
    /// The part of `received` that the metrics have already counted.
    let countedReceived: Int64
}

/// The progress of uploads by one request, for the metrics.
struct UploadProgress: Sendable, Hashable {
    /// An upload resource was created.
    var hasCreated = false
    /// Content was appended to an upload that already had content.
    var hasResumed = false
    /// The representation of an upload is complete, and its target has responded.
    var hasCompleted = false
}

/// The ID of a request in logs: 64 random bits in hexadecimal.
struct RequestID: Sendable, Hashable, CustomStringConvertible {
    private let value: UInt64

    init() { value = KernelRandom().next() }

    var description: String {
        String(unsafeUninitializedCapacity: 16) { buffer in
            guard let start = buffer.baseAddress else { return 0 }
            value.writeHexadecimal(16, to: start)
            return 16
        }
    }
}

/// The stable code in the problem document of a response; `other` if a target has responded with a text that does not
/// look like a code. Log and metrics contain it.
struct ProblemCode: Decodable {
    private(set) var code: String?

    init?(of response: Response) {
        guard response.fields["Content-Type"] == ProblemDetails.mediaType, let bytes = response.content.bytes,
            let found = try? JSONDecoder().decode(ProblemCode.self, from: Data(bytes))
        else { return nil }
        self = found
        if let code, !Self.isValidLabel(code) { self.code = "other" }
    }

    /// Whether a code can be a label; a target can respond with any text as its code.
    static func isValidLabel(_ code: String) -> Bool {
        (1...64).contains(code.utf8.count)
            && code.utf8.allSatisfy { $0 == 0x2D || (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) }
    }
}

/// Sends interim responses to one request. Only the thread of the connection may use it, from the first to the last call
/// of the request's ``Exchange``; nothing else writes to the connection in this time.
struct InterimChannel: Sendable {
    /// Sends bytes and waits at most `timeout` milliseconds until the connection is writable; `nil` if the client does
    /// not support interim responses (HTTP/1.0). If more output follows immediately, both may be sent together.
    let send: (@Sendable (_ bytes: [UInt8], _ timeout: Int32, _ isFollowed: Bool) -> SocketOutput.Outcome)?
    /// The base of the server's paths for the client.
    let base: PublicBase

    /// Sends the head of an interim response. Waits at most `timeout` milliseconds until the connection is writable.
    ///
    /// An interim response is optional: a client that does not read misses it (RFC 9110 section 15.2).
    /// - Parameter isFollowed: whether the final response follows immediately, and may be sent together with this one.
    func send(_ head: ResponseHead, timeout: Int32, isFollowed: Bool = false) -> SocketOutput.Outcome {
        forward(ResponseHead(status: head.status, fields: base.rebased(head.fields)), timeout, isFollowed)
    }

    /// Sends the head of another server's interim response, unchanged.
    func forward(_ head: ResponseHead, _ timeout: Int32, _ isFollowed: Bool = false) -> SocketOutput.Outcome {
        send?(head.serialized(), timeout, isFollowed) ?? .notWritable
    }
}

extension ResponseHead {
    /// The head as in HTTP/1.1, including the empty line at its end.
    func serialized() -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(512)
        func append(_ texts: String...) { for text in texts { head += text.utf8 } }
        append("HTTP/1.1 ", String(status.rawValue), " ", status.reasonPhrase, "\r\n")
        for field in fields {
            append(field.name, ": ")
            field.value.appendFieldBytes(to: &head)
            append("\r\n")
        }
        append("\r\n")
        return head
    }
}

/// The maximum number of interim responses to a request.
enum InterimAllowance {
    /// Go's HTTP client, and proxies that use it (Caddy, Traefik), accept at most 5 interim responses, and abort the
    /// request at the sixth.
    private static let maxResponses = 5

    /// The maximum number of interim responses with offsets, in addition to the interim response with the URL of the
    /// upload and a possible 100; `nil`: any number.
    ///
    /// The limit applies to every proxy, because the server cannot detect whether a proxy uses Go's HTTP client.
    static func offsets(for fields: Fields) -> Int? {
        let isForwarded = ["Via", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"].contains {
            fields.contains($0)
        }
        let isGo = fields["User-Agent"]?.hasPrefix("Go-http-client/") == true
        return isForwarded || isGo ? maxResponses - 2 : nil
    }
}

/// Names of fields that only this server uses.
enum ServerFieldName {
    /// In a request, `off` turns off interim responses of the upload protocol, for proxies that fail on them.
    static let interim = "Onward-Interim"
    /// In a request, `?1` requests an explanation of omitted interim responses, in a field of this name in the
    /// response.
    static let explain = "Onward-Explain"

    static let requestFields = [interim, explain]
}
