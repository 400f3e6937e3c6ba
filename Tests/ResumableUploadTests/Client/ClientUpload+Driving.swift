import HTTPSemantics
import ResumableUpload
import Testing

extension ClientUpload {
    /// An upload whose waits are as long as the policy allows.
    static func fresh(
        _ dialect: Dialect = .interop8, style: CreationStyle = .optimistic, method: Method = .post,
        length: Int64? = 100, maxRequestContentLength: Int64? = nil, fields: Fields = Fields(),
        isOtherOriginAllowed: Bool = false, retry: RetryPolicy = RetryPolicy()
    ) -> ClientUpload {
        ClientUpload(
            UploadIntent(
                dialect: dialect, style: style, method: method, length: length,
                maxRequestContentLength: maxRequestContentLength,
                fields: fields, isOtherOriginAllowed: isOtherOriginAllowed), retry: retry, random: { 1 })
    }

    /// A resumed upload with the resource `/u/1`.
    static func resumed(
        _ dialect: Dialect = .interop8, acknowledged: Int64 = 0, length: Int64? = 100, expires: Int64? = nil,
        limits: UploadLimits = UploadLimits()
    ) -> ClientUpload {
        ClientUpload(
            resuming: UploadResumption(
                uri: "/u/1", dialect: dialect, acknowledged: acknowledged, length: length, limits: limits,
                expires: expires), intent: UploadIntent(length: length), retry: RetryPolicy(), random: { 1 })
    }

    /// An upload after its careful creation; the next request appends from the beginning.
    static func appending(
        _ dialect: Dialect = .interop8, length: Int64? = 100, maxRequestContentLength: Int64? = nil,
        limit: String? = nil
    ) throws -> ClientUpload {
        var upload = fresh(
            dialect, style: .careful, length: length, maxRequestContentLength: maxRequestContentLength)
        _ = try upload.request()
        upload.answer(201, dialect.head(complete: false, limit: limit), location: "/u/1")
        return upload
    }

    /// The next request; waits before it are skipped.
    mutating func request(
        now: Int64 = 0, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> ClientRequest {
        while true {
            switch next(now: now) {
            case .wait: continue
            case .send(let request): return request
            case let step:
                Issue.record("no request, but \(step)", sourceLocation: sourceLocation)
                throw Unexpected()
            }
        }
    }

    /// The length of the next wait in seconds.
    mutating func wait(sourceLocation: SourceLocation = #_sourceLocation) throws -> Double {
        guard case .wait(let duration, _) = next(now: 0) else {
            Issue.record("no wait", sourceLocation: sourceLocation)
            throw Unexpected()
        }
        return Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }

    /// The failure of the upload, `nil` if it did not fail; waits are skipped.
    mutating func failed(now: Int64 = 0) -> ClientFailure? {
        while true {
            switch next(now: now) {
            case .wait: continue
            case .failed(let failure): return failure
            case .send, .refreshCredentials, .finished: return nil
            }
        }
    }

    /// The outcome of the upload, `nil` if it did not end.
    mutating func outcome() -> UploadOutcome? {
        if case .finished(let outcome) = next(now: 0) { outcome } else { nil }
    }

    mutating func announce(
        _ location: String? = "/u/1", _ relation: ResolvedLocation.Relation = .sameOrigin, _ fields: Fields? = nil,
        now: Int64 = 0
    ) -> InterimReaction {
        interim(
            ClientResponseHead(
                status: 104, fields: fields ?? Dialect.interop8.interim(),
                location: location.map { ResolvedLocation(uri: $0, relation: relation) }), now: now)
    }

    mutating func answer(
        _ status: Status, _ fields: Fields = Fields(), location: String? = nil,
        _ relation: ResolvedLocation.Relation = .sameOrigin, sent: Int64 = 0, hasSourceEnded: Bool = false,
        problem: ProblemType? = nil, now: Int64 = 0
    ) {
        responded(
            ClientResponseHead(
                status: status, fields: fields,
                location: location.map { ResolvedLocation(uri: $0, relation: relation) }), sent: sent,
            hasSourceEnded: hasSourceEnded, problem: problem, now: now)
    }

    mutating func cut(_ reason: ClientInterruption = .connection, sent: Int64 = 0) {
        interrupted(reason, sent: sent, hasSourceEnded: false)
    }
}

struct Unexpected: Error {}

extension Dialect {
    /// The fields of a 104.
    func interim(offset: Int64? = nil, limit: String? = nil) -> Fields {
        var fields = Fields()
        if let interopVersion { fields.append("Upload-Draft-Interop-Version", "\(interopVersion)") }
        if let offset { fields.append("Upload-Offset", "\(offset)") }
        if let limit { fields.append("Upload-Limit", limit) }
        return fields
    }

    /// The fields of a final response.
    func head(
        complete: Bool? = nil, offset: Int64? = nil, length: Int64? = nil, limit: String? = nil
    ) -> Fields {
        var fields = Fields()
        if let complete {
            let field = completenessField(complete)
            fields.append(field.name, field.value)
        }
        if let offset { fields.append("Upload-Offset", "\(offset)") }
        if let length { fields.append("Upload-Length", "\(length)") }
        if let limit { fields.append("Upload-Limit", limit) }
        return fields
    }
}
