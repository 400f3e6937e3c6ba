import HTTPSemantics
import ResumableUpload
import SystemCalls
import UploadStorage

/// Serves one request to an upload resource (draft sections 4.3 to 4.5).
struct UploadEndpoint {
    let service: TransferService
    let request: RequestContext
    let identity: Identity

    /// The time that a repeat of the completing request waits while the target is still processing the upload.
    private static let processingWait: Duration = .seconds(30)
    private var store: UploadStore { service.store }
    private var principal: String { identity.principal }
    private var operation: AccessOperation { request.method == .options ? .discover : .create }

    /// - Parameter identifier: the last segment of the path; `nil` if there is none.
    func serve(_ identifier: String?) -> RequestStep {
        let unknown = service.responses(for: request, stored: nil)
        // This is checked before the look-up, so that a client that may not upload cannot find out whether the upload
        // exists.
        if let refusal = service.refusal(of: identity, operation, on: nil) { return .respond(refusal) }
        guard let id = identifier.flatMap({ UploadID(parsing: $0) }) else {
            return .respond(refused(.notFound, unknown))
        }
        do {
            let record = try store.record(id)
            guard record.upload.principal == principal else { return .respond(refused(.notFound, unknown)) }
            request.upload = id
            let responses = service.responses(for: request, stored: record.upload.dialect)
            let match = service.routes.match(reference: record.upload.target)
            if match?.route.streaming != nil { request.ownPath = service.routes.uploadsPath }
            // The response is not 404, because the creator knows that the upload exists.
            if let refusal = service.refusal(of: identity, operation, on: match?.target) { return .respond(refusal) }
            if case .invalid(let reason) = record.phase, request.method != .options {
                return .respond(refused(.deactivated(reason: reason), responses))
            }
            return try serve(record, responses)
        } catch {
            return .respond(failed(error, unknown))
        }
    }

    private func serve(_ record: UploadRecord, _ responses: UploadResponses) throws(StoreError) -> RequestStep {
        let kind = RequestKind(
            method: request.method, isUploadResource: true, fields: request.fields, dialect: responses.dialect)
        switch kind {
        case .discovery:
            return .respond(
                service.discovery(
                    request, methods: [.head, .get, .patch, .delete, .options], limits: remainingLimits(record)))
        case .retrieval:
            if let error = responses.dialect.retrievalRefusal(fields: request.fields) {
                return .respond(refused(error, responses))
            }
            return .respond(try repeatingOnce { () throws(StoreError) in try retrieve(record, responses) })
        case .cancellation:
            if let error = responses.dialect.retrievalRefusal(fields: request.fields) {
                return .respond(refused(error, responses))
            }
            try store.cancel(record.id, principal: principal)
            return .respond(responses.canceled())
        case .append:
            return try append(record, responses)
        case .creation, .plain, .notAllowed:
            return .respond(refused(.methodNotAllowed, responses))
        }
    }

    /// Runs `body` a second time if its lease ended, for example because earlier bytes could not be synchronized. The
    /// second lease starts at the durable offset.
    private func repeatingOnce<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        do { return try body() } catch .superseded { return try body() }
    }

    /// Makes the received bytes durable, and returns the offset.
    /// - Throws: `superseded` if the lease has ended, for example because earlier bytes could not be synchronized.
    private func acknowledge(_ lease: UploadLease) throws(StoreError) -> Int64 {
        do throws(StoreError) { return try lease.acknowledge() } catch { throw lease.isCurrent ? error : .superseded }
    }

    // MARK: Retrieval

    /// Ends a request that is still sending content to the upload, so that an append is accepted at the reported
    /// offset.
    private func retrieve(_ record: UploadRecord, _ responses: UploadResponses) throws(StoreError) -> Response {
        switch try store.takeOver(record.id, principal: principal, waitForProcessing: .zero, exclusive: true) {
        case .lease(let lease):
            defer { lease.release() }
            let offset = try acknowledge(lease)
            request.offset = offset
            let state = state(of: lease.record, offset: offset)
            if responses.dialect.completesOnRetrieval(state), let context = context(of: lease.record, responses) {
                return try complete(lease, state, context)
            }
            return responses.retrieved(state: state)
        case .processing(let record), .complete(let record):
            request.offset = record.offset
            return responses.retrieved(state: state(of: record, offset: record.offset))
        }
    }

    /// Completes an upload whose content has the declared length, after a request that got no response.
    private func complete(
        _ lease: UploadLease, _ state: UploadState, _ context: UploadExchange.Context
    ) throws(StoreError) -> Response {
        let plan = ContentPlan(start: state.offset, completion: .atLength, length: state.length)
        var step = try UploadExchange.begin(context, lease: lease, plan: plan, kind: .retrieval)
        // The content of this request does not belong to the upload and is not read.
        if case .receive(let exchange) = step { step = exchange.finish() }
        guard case .respond(let response) = step else { throw .superseded }
        return response
    }

    // MARK: Append

    private func append(_ record: UploadRecord, _ responses: UploadResponses) throws(StoreError) -> RequestStep {
        request.explanation?.handling = .append
        request.explanation?.permission = responses.interim
        let append: Append
        do {
            append = try Append(dialect: responses.dialect, fields: request.fields, framing: request.framing)
        } catch {
            return .respond(refused(error, responses, record))
        }
        // If the length of the upload is known, ``Append/decide(state:)`` compares the end of the content with it.
        if append.isComplete, record.length == nil, request.isLengthMissing {
            return .respond(ProblemDetails.missingLength)
        }
        func attempt() throws(StoreError) -> RequestStep {
            switch try store.takeOver(record.id, principal: principal, waitForProcessing: .zero, exclusive: true) {
            case .lease(let lease): try begin(append, lease, responses)
            case .processing(let record), .complete(let record): respond(to: append, record, responses)
            }
        }
        if append.contentLength == 0 { return try repeatingOnce(attempt) }
        // A newer request may take the upload over before this request receives content.
        do { return try attempt() } catch .superseded { return .drop }
    }

    /// Responds to an append to an upload that accepts no more content.
    private func respond(to append: Append, _ record: UploadRecord, _ responses: UploadResponses) -> RequestStep {
        request.offset = record.offset
        let state = state(of: record, offset: record.offset)
        guard append.contentLength != nil else {
            // Without Content-Length only the end of the content shows whether this append repeats the completing
            // append.
            var empty = append
            empty.contentLength = 0
            let served = respond(to: empty, record, responses)
            guard case .respond(let response) = served else { return served }
            return .receive(DeferredExchange(refused(.completed, responses, record)) { response })
        }
        switch append.decide(state: state) {
        case .refuse(let error):
            return .respond(refused(error, responses, record))
        case .replay(let response):
            return .respond(responses.finished(response, state: state, uploadLocation: nil))
        case .join, .accept:
            return .receive(DeferredExchange(refused(.completed, responses, record)) { join(record, responses) })
        }
    }

    /// Waits until the target has processed the upload, and returns its response. The target never runs twice.
    private func join(_ record: UploadRecord, _ responses: UploadResponses) -> Response {
        do {
            let outcome = try store.takeOver(
                record.id, principal: principal, waitForProcessing: Self.processingWait, exclusive: true)
            switch outcome {
            case .complete(let record):
                guard case .complete(let response) = record.phase else { break }
                let state = state(of: record, offset: record.offset)
                return responses.finished(response, state: state, uploadLocation: nil)
            case .lease(let lease):
                // The target was interrupted, or is unavailable. A repeated request completes the upload.
                lease.release()
            case .processing: break
            }
            var response = responses.failed(ProblemDetails.stillProcessing, offset: record.offset)
            response.fields.set("Retry-After", "1")
            return response
        } catch {
            return failed(error, responses)
        }
    }

    private func begin(_ append: Append, _ lease: UploadLease, _ responses: UploadResponses) throws(StoreError)
        -> RequestStep
    {
        var isLeasePassedOn = false
        defer { if !isLeasePassedOn { lease.release() } }
        let offset = try acknowledge(lease)
        request.offset = offset
        let record = lease.record
        let state = state(of: record, offset: offset)
        switch append.decide(state: state) {
        case .refuse(let error):
            return .respond(refused(error, responses, record, offset: offset))
        case .replay, .join:
            return .respond(refused(.completed, responses, record, offset: offset))
        case .accept(let plan) where service.configuration.isLengthRequired && plan.isOpenEnded(request.framing):
            return .respond(refused(.lengthRequired, responses, record, offset: offset))
        case .accept(let plan):
            guard let context = context(of: record, responses) else {
                return .respond(refused(.deactivated(reason: "the server no longer serves its target"), responses))
            }
            // An append without content is already received completely: a request that takes the upload over waits for
            // the append instead of closing its connection.
            if append.contentLength != 0 {
                let connection = request.connection
                lease.onRevocation { connection.close(reason: .takenOver) }
            }
            request.progress.hasResumed = plan.start > 0
            isLeasePassedOn = true
            return try UploadExchange.begin(context, lease: lease, plan: plan, kind: .append)
        }
    }

    // MARK: Values

    /// The context to complete the upload; `nil` if its target is no longer served.
    private func context(of record: UploadRecord, _ responses: UploadResponses) -> UploadExchange.Context? {
        service.routes.match(reference: record.upload.target).map { route, target in
            UploadExchange.Context(
                service: service, request: request, identity: identity, responses: responses, upload: record.upload,
                route: route, target: target)
        }
    }

    private func state(of record: UploadRecord, offset: Int64) -> UploadState {
        let phase: UploadState.Phase =
            switch record.phase {
            case .complete(let response): .complete(response)
            case .processing: .processing
            case .receiving, .invalid: .receiving
            }
        return UploadState(offset: offset, length: record.length, phase: phase, limits: remainingLimits(record))
    }

    private func remainingLimits(_ record: UploadRecord) -> UploadLimits {
        record.upload.limits.remaining(record.expiresAt.map { service.store.remaining(until: $0) })
    }

    private func refused(
        _ error: UploadError, _ responses: UploadResponses, _ record: UploadRecord? = nil, offset: Int64? = nil
    ) -> Response {
        responses.refused(error, offset: offset ?? record?.offset, limits: record.map(remainingLimits))
    }

    private func failed(_ error: StoreError, _ responses: UploadResponses) -> Response {
        service.report(error, request: request.id)
        return switch error {
        case .notFound: refused(.notFound, responses)
        case .gone(let reason): refused(.deactivated(reason: reason), responses)
        case .stateLost: refused(.deactivated(reason: "some of its bytes are missing"), responses)
        case .completed: refused(.completed, responses)
        default: responses.failed(ProblemDetails(error), offset: nil)
        }
    }
}
