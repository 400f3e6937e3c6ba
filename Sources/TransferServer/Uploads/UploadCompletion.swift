import HTTPSemantics
import ResumableUpload
import UploadStorage

/// Completes an upload: compares its digest, calls its target, and stores the response before it is sent.
struct UploadCompletion {
    private let context: UploadExchange.Context
    private let lease: UploadLease
    private let length: Int64
    /// Whether the target was called.
    private(set) var hasTargetRun = false

    init(_ context: UploadExchange.Context, lease: UploadLease, length: Int64) {
        self.context = context
        self.lease = lease
        self.length = length
    }

    /// How the completion ended. The responses have no fields of the upload protocol.
    enum Outcome {
        /// The final response of the target, which is stored.
        case final(Response)
        /// The target could not process the upload, and can be called again.
        case postponed(TargetUnavailable)
    }

    /// - Throws: `StoreError` if the store failed; the upload is then unchanged, and its client can retry. `superseded`
    ///   if the server stopped before the target returned a response.
    mutating func run() throws(StoreError) -> Outcome {
        let digests = RepresentationDigests(fields: context.upload.fields)
        if let mismatch = try mismatch(of: digests) {
            return try store(Response(mismatch.problem(in: context.responses.dialect)))
        }
        let call = context.service.handlerCall(for: context.request)
        let upload = try receivedUpload(digests, executor: call.executor)
        hasTargetRun = true
        let result = complete(upload, in: call)
        upload.end()
        context.request.check = upload.check
        return try outcome(of: upload, result, call)
    }

    /// The first digest of the client that the content does not have.
    private func mismatch(of digests: RepresentationDigests) throws(StoreError) -> UploadError? {
        for (algorithm, expected) in digests.expected?.values ?? [] {
            guard try lease.representationDigest(algorithm) != expected else { continue }
            return .digestMismatch(field: "Repr-Digest", algorithm: algorithm.rawValue)
        }
        return nil
    }

    /// The upload that the handler gets.
    private func receivedUpload(
        _ digests: RepresentationDigests, executor: ThreadExecutor
    ) throws(StoreError) -> ReceivedUpload {
        var digestValue: String?
        if let wanted = digests.wanted {
            digestValue = DigestField(values: [(wanted, try lease.representationDigest(wanted))]).serialized
        }
        return ReceivedUpload(
            target: context.target, upload: context.upload,
            fields: StoredCreation.declared(context.upload.fields, by: context.route), length: length,
            canReplace: context.service.refusal(of: context.identity, .write, on: context.target) == nil, lease: lease,
            store: context.service.store, executor: executor, digest: digestValue,
            verifiedDigest: digests.expected?.serialized,
            forwarding: context.route.streaming != nil
                ? context.service.forwardingContext(of: context.request, context.identity) : nil,
            resource: resource)
    }

    /// Calls the handler. Returns `nil` if it did not return in time after its task was canceled.
    private func complete(_ upload: ReceivedUpload, in call: HandlerCall) -> Result<Response, any Error>? {
        if let handler = context.route.synchronous, handler.isCompletedSynchronously {
            return call.runSynchronously { Result { try handler.completeSynchronously(upload) } }
        }
        let handler = context.route.handler
        return call.run { do { return .success(try await handler.complete(upload)) } catch { return .failure(error) } }
    }

    /// Stores the response to the upload, unless it is stored already or the handler can be called again.
    private func outcome(
        of upload: ReceivedUpload, _ result: Result<Response, any Error>?, _ call: HandlerCall
    ) throws(StoreError) -> Outcome {
        switch (upload.publicationResult, result) {
        case (.success(let published)?, .success?), (.success(let published)?, nil): return .final(published)
        case (.success(let published)?, .failure(let error)?):
            log(error)
            return .final(published)
        case (_, nil):
            logStop(because: "the handler did not return in time after its task was canceled")
            throw .superseded
        case (nil, .failure(let error)?) where call.isCanceled:
            // The target was interrupted, as if the process had ended.
            let isOwn = error is CancellationError || error as? StoreError == .superseded
            logStop(because: isOwn ? nil : "\(error)")
            throw .superseded
        case (_, .success(let response)?):
            return try store(upload.withDigest(response), adding: upload.forwarding?.unstoredFields ?? [:])
        case (_, .failure(let error as TargetUnavailable)?) where context.route.handler.isCompletionRepeatable:
            context.service.log.warning("\(error)", request: context.request.id)
            return .postponed(error)
        case (.failure(let failure)?, .failure(let rejection as ContentRejection)?) where failure.isAboutName:
            return try store(upload.withDigest(Response(rejection.problem)))
        case (.failure(let error)?, .failure(let thrown)?):
            if thrown as? StoreError != error { log(thrown) }
            guard error.isAboutName else { throw error }
            return try store(Response(ProblemDetails(error)))
        case (nil, .failure(let error as TargetInterrupted)?):
            log(error)
            return .final(try lease.completeAsInterrupted())
        case (nil, .failure(let error as ContentRejection)?):
            return try store(upload.withDigest(Response(error.problem)))
        case (nil, .failure(let error as StoreError)?) where error.isAboutPart:
            return try store(Response(ProblemDetails(error)))
        case (nil, .failure(let error)?):
            log(error)
            return try store(Response(ProblemDetails.targetFailed))
        }
    }

    /// Finds another resource of the handler by its path.
    private var resource: @Sendable (String) -> ReceivedUpload.Resource? {
        let service = context.service
        let identity = context.identity
        let prefix = context.target.prefix
        return { reference in
            guard let path = try? PathSegments(decoding: reference),
                let target = service.routes.match(path, query: nil)?.target, target.prefix == prefix
            else { return nil }
            return ReceivedUpload.Resource(
                target: target, canReplace: service.refusal(of: identity, .write, on: target) == nil)
        }
    }

    private func log(_ error: any Error) {
        context.service.log.error("the handler failed to process the upload: \(error)", request: context.request.id)
    }

    /// Logs that the server stops before the target has responded, and what happens to the upload.
    private func logStop(because reason: String?) {
        let consequence =
            if lease.isProcessingRecorded {
                "its outcome is unknown, and it is not called again"
            } else if lease.id == nil {
                "the client has to send the content again"
            } else {
                "the upload is kept, and the target is called again when the client repeats its request"
            }
        context.service.log.warning(
            "the server stops before the target has responded\(reason.map { " (\($0))" } ?? ""): \(consequence)",
            request: context.request.id)
    }

    /// - Parameter unstored: fields that only this response has.
    private func store(_ response: Response, adding unstored: Fields = [:]) throws(StoreError) -> Outcome {
        var saved: Response
        do { saved = try response.loaded() } catch {
            log(error)
            saved = Response(ProblemDetails.targetFailed)
        }
        let connection = context.request.connection
        try lease.complete(with: saved, while: { !connection.isStopping })
        for field in unstored { saved.fields.append(field.name, field.value) }
        return .final(saved)
    }
}

extension StoreError {
    /// Whether the client can act on the failure to publish a part of its upload.
    fileprivate var isAboutPart: Bool {
        switch self {
        case .targetIsDirectory, .targetIsSpecial, .parentIsFile, .pathTooLong, .noFreeName, .quotaExceeded,
            .insufficientSpace:
            true
        default: false
        }
    }
}
