import FoundationEssentials
import HTTPSemantics
import StructuredFields
import SystemCalls
import UploadStorage

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
    /// Adds the common fields to the response, and keeps its status for the log.
    func complete(_ response: Response) -> Response {
        var response = response
        let code = ProblemCode(of: response)?.code
        if response.status.isClientError || response.status.isServerError {
            explanation?.refusal = code ?? "status \(response.status)"
        }
        sent = SentResponse(
            status: response.status, code: code, bytes: method == .head ? 0 : response.content.length ?? 0)
        if fields.uploadBoolean(ServerFieldName.explain) == true, let explanation,
            let value = try? Item(.string(explanation.sentence)).serialized()
        {
            response.fields.set(ServerFieldName.explain, value)
        }
        response.fields = origin.base.rebased(response.fields)
        for field in responseFields { response.fields.append(field.name, field.value) }
        // Problem documents can contain untrusted input.
        if response.fields["Content-Type"] == ProblemDetails.mediaType {
            response.fields.set("X-Content-Type-Options", "nosniff")
            response.fields.set("Content-Security-Policy", "sandbox; default-src 'none'")
        }
        // The clock of libmicrohttpd can be late, and Last-Modified must not be later than Date (RFC 9110 section
        // 8.8.2.1).
        response.fields.set("Date", HTTPDate(secondsSinceEpoch: SystemClock.realtimeSeconds()).serialized)
        return response
    }

    func summary(_ end: RequestEnd) -> RequestSummary {
        RequestSummary(
            id: id, method: method.rawValue, target: head.target, status: sent?.isQueued == true ? sent?.status : nil,
            code: sent?.code, received: contentReceived, sent: sentBytes(end),
            nanoseconds: SystemClock.monotonicNanoseconds() - startedAt,
            interruption: end == .interrupted ? connection.closeReason?.rawValue ?? "client" : nil,
            origin: origin, principal: principal, route: route, upload: upload, offset: offset,
            progress: progress, explanation: explanation, countedReceived: countedReceived)
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
    /// The upload of the request. The log shows only a hash of its ID.
    let upload: UploadID?
    /// The durable offset of the upload; `nil` if it is unknown.
    let offset: Int64?
    let progress: UploadProgress
    let explanation: UploadExplanation?
    /// The part of `received` that the metrics have already counted.
    let countedReceived: Int64
}

/// The stable code in the problem document of a response.
private struct ProblemCode: Decodable {
    let code: String?

    init?(of response: Response) {
        guard response.fields["Content-Type"] == ProblemDetails.mediaType, let bytes = response.content.bytes,
            let found = try? JSONDecoder().decode(ProblemCode.self, from: Data(bytes))
        else { return nil }
        self = found
    }
}
