import HTTPSemantics
import ResumableUpload
import UploadStorage

/// Completes an upload: compares its digest, calls its target, and stores the response before it is sent.
struct UploadCompletion {
    private let context: UploadExchange.Context
    private let lease: UploadLease
    private let length: Int64
    /// Whether the target was called.
    private(set) var targetHasRun = false

    init(_ context: UploadExchange.Context, lease: UploadLease, length: Int64) {
        self.context = context
        self.lease = lease
        self.length = length
    }

    /// - Returns: the response of the target, independent of a dialect.
    /// - Throws: `StoreError` if the store failed; the upload is then unchanged, and its client can retry.
    mutating func run() throws(StoreError) -> FinalResponse {
        let digests = RepresentationDigests(fields: context.upload.fields)
        for (algorithm, expected) in digests.expected?.values ?? [] {
            guard try lease.representationDigest(algorithm) != expected else { continue }
            let mismatch = UploadError.digestMismatch(field: "Repr-Digest", algorithm: algorithm.rawValue)
            return try store(FinalResponse(mismatch.problem(in: context.responses.dialect)))
        }
        var digestValue: String?
        if let wanted = digests.wanted {
            digestValue = DigestField(values: [(wanted, try lease.representationDigest(wanted))]).serialized
        }
        let upload = ReceivedUpload(
            target: context.target, upload: context.upload, length: length,
            mayReplace: context.service.refusal(of: context.identity, .write, on: context.target) == nil, lease: lease)
        let outcome: TargetOutcome
        targetHasRun = true
        do {
            outcome = try context.handler.complete(upload)
        } catch {
            context.service.log.error("target failed: \(error)", request: context.request.id)
            return try store(FinalResponse(ProblemDetails.targetFailed))
        }
        switch outcome {
        case .respond(var response):
            if let digestValue { response.fields.set("Repr-Digest", digestValue) }
            return try store(response)
        case .publish(var publication):
            if let digestValue {
                let respond = publication.response
                publication.response = { created, name in
                    var response = respond(created, name)
                    response.fields.set("Repr-Digest", digestValue)
                    return response
                }
            }
            return try publish(publication)
        }
    }

    private func publish(_ publication: Publication) throws(StoreError) -> FinalResponse {
        do {
            return try lease.publish(publication)
        } catch .targetIsDirectory {
            return try store(FinalResponse(ProblemDetails(StoreError.targetIsDirectory)))
        } catch .targetIsSpecial {
            return try store(FinalResponse(ProblemDetails(StoreError.targetIsSpecial)))
        } catch .parentIsFile {
            return try store(FinalResponse(ProblemDetails(StoreError.parentIsFile)))
        } catch .noFreeName {
            return try store(FinalResponse(ProblemDetails(StoreError.noFreeName)))
        } catch {
            throw error
        }
    }

    private func store(_ response: FinalResponse) throws(StoreError) -> FinalResponse {
        try lease.complete(with: response)
        return response
    }
}
