import HTTPSemantics
import HTTPTransport
import SystemCalls
import TransferServer

/// An HTTP endpoint that gets each file as the content of a `POST`.
///
/// A status of 2xx accepts the file; `Onward-Target` of the response names another path. See ``RefusalDocument`` for the
/// responses that refuse it. After every other response, and without one, there is no verdict.
struct EndpointChecker: Checker {
    private let url: DestinationURL
    private let timeout: Duration
    private let client: OriginClient

    init(_ url: DestinationURL, timeout: Duration) {
        self.url = url
        self.timeout = timeout
        // The check ends before this timeout, at its own time limit.
        client = OriginClient(url.origin, timeout: timeout + .seconds(5))
    }

    func verdict(on upload: ReceivedUpload) throws(CheckFailure) -> PublicationVerdict {
        let request = OriginRequest(
            method: .post, target: url.target, fields: Self.fields(of: upload),
            content: upload.length == 0 ? .empty : .range(from: 0, count: upload.length),
            source: upload.length == 0 ? nil : UploadContent(upload), isRepeatable: true)
        let deadline = SystemClock.deadline(in: timeout)
        let outcome = OriginDelivery(client, request).run(isCanceled: {
            Task.isCancelled || SystemClock.monotonicNanoseconds() >= deadline
        })
        switch outcome {
        case nil: throw CheckFailure("has not responded within \(timeout.wholeSeconds) s")
        case .unknown(let reason)?: throw CheckFailure("has not responded: \(reason)")
        case .unavailable(let reason, let retryAfter)?:
            throw CheckFailure("is not available: \(reason)", retryAfter: retryAfter)
        case .responseTooLarge?: throw CheckFailure("has sent more than 1 MiB")
        case .responded(let response, _)?: return try Self.verdict(response)
        }
    }

    /// The fields that describe the upload, as in the requests of routes, and those fields of the client that describe
    /// the file. None of them contains credentials.
    private static func fields(of upload: ReceivedUpload) -> Fields {
        var fields: Fields = [
            "User-Agent": "onward", "Onward-Method": upload.method.rawValue, "Onward-Target": upload.target.path,
            "Onward-Upload": upload.idempotencyKey,
        ]
        if upload.principal != Identity.anonymous.principal { fields.append("Onward-Principal", upload.principal) }
        if let digest = upload.verifiedDigest { fields.append("Onward-Digest", digest) }
        for name in ["Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition"] {
            for value in upload.fields.values(name) { fields.append(name, value) }
        }
        return fields
    }

    private static func verdict(_ response: Response) throws(CheckFailure) -> PublicationVerdict {
        if response.status.isSuccessful {
            return response.fields["Onward-Target"].map { .acceptAs($0) } ?? .accept
        }
        let content = response.content.bytes ?? []
        let type = response.fields["Content-Type"].flatMap { MediaType(parsing: $0) }
        if type?.essence == ProblemDetails.mediaType, RefusalDocument.canRefuse(response.status),
            let refusal = RefusalDocument(json: content, status: response.status)
        {
            return .refuse(refusal.response)
        }
        if response.status == RefusalDocument.status {
            return .refuse(RefusalDocument(text: type?.essence == "text/plain" ? content : []).response)
        }
        throw CheckFailure(
            "has responded with status \(response.status)"
                + (RefusalDocument.canRefuse(response.status)
                    ? ", which refuses the file only with a problem document (\(ProblemDetails.mediaType)); 422 needs none"
                    : ""))
    }
}
