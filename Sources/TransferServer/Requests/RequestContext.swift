import HTTPSemantics
import ResumableUpload
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
        /// The response is known, and is sent when the request has ended.
        case responding(Response)
        /// The response was sent before the content had ended.
        case discarding
        case queued
    }

    let id = RequestID()
    /// The request as it was received; its framing can be rejected.
    let received: ReceivedRequest
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
    var isForwarded = false
    /// The fields of every response to this request.
    var responseFields = Fields()
    /// The principal that sent the request; `nil` if it is unknown.
    var principal: String?

    // MARK: For log, metrics and explanations

    /// The route label of the metrics; see ``Route/label``.
    var route = Route.unknown.label
    /// The upload of the request.
    var upload: UploadID?
    /// The durable offset of the upload; `nil` if it is unknown.
    var offset: Int64?
    var progress = UploadProgress()
    /// `nil` if the request has no content for an upload or a target.
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
    /// Whether the client sent the request over https, according to a trusted proxy or otherwise to the connection.
    var isSecure: Bool { origin.scheme.map { $0 == "https" } ?? (connection.credentials != nil) }
    /// Whether the end of the connection may be the end of the content (RFC 1945 section 7.2). A server cannot
    /// distinguish that from an interruption.
    var lacksLength: Bool { head.version < .http11 && framing == .none }
    /// Whether content follows the head.
    var expectsContent: Bool {
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
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}
