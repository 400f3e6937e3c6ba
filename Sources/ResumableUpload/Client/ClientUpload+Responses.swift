import HTTPSemantics

extension ClientUpload {
    /// Handles the final response to the current request.
    /// - Parameters:
    ///   - sent: the number of bytes of its content that were sent.
    ///   - hasSourceEnded: whether the source ended after these bytes; used if the length of the source is not known.
    ///   - problem: the problem document in the response.
    ///   - now: seconds since 1970.
    package mutating func responded(
        _ head: ClientResponseHead, sent: Int64, hasSourceEnded: Bool, problem: ProblemType?, now: Int64
    ) {
        guard case .sending(let request) = phase else { return }
        guard abort == nil else { return interrupted(.connection, sent: sent, hasSourceEnded: hasSourceEnded) }
        if intent.style != .plain { record(limitsOf: head.fields, now: now) }
        if follows(head.status, to: request) {
            return follow(head, of: request)
        }
        redirections = 0
        if shouldRefreshCredentials(after: head) { return refreshCredentials(for: request) }
        let response = ReceivedResponse(
            head: head, sent: sent, hasSourceEnded: hasSourceEnded, problem: problem, now: now)
        if head.status.isSuccessful || response.offset != nil { isOnlyAnnounced = false }
        switch request.kind {
        case .cancel: endCancellation(isConfirmed: head.status.isSuccessful || head.status.isGone)
        case .discover:
            let isSupported = announcesSupport(head)
            // Rejected credentials and temporary errors show nothing about the target.
            let isUnknown = head.status.isUnauthorized || head.status.isTransient
            isResumptionSupported = isUnknown ? nil : isSupported
            endDiscovery(isSupported: isSupported)
        case .retrieve: handleRetrieval(response)
        case .create, .append:
            if let completed {
                endReplay(of: completed, response)
            } else if isFinal(response, to: request) {
                finish(head)
            } else if head.status.isSuccessful {
                handleProgress(response, to: request)
            } else {
                handleRefusal(response, to: request)
            }
        case .download: break
        }
    }

    /// Whether a response with this status redirects the request.
    package func follows(_ status: Status, to request: ClientRequest) -> Bool {
        [.temporaryRedirect, .permanentRedirect].contains(status) && request.kind != .cancel
    }

    /// A final response, and the properties of its request that determine the next step.
    struct ReceivedResponse {
        let head: ClientResponseHead
        let sent: Int64
        let hasSourceEnded: Bool
        let problem: ProblemType?
        let now: Int64

        var status: Status { head.status }

        var offset: Int64? { head.fields.uploadInteger(UploadFieldName.offset) }
    }

    // MARK: Responses of the target

    /// Whether this is the response of the target, after which there is nothing to resume (draft section 4.1.2).
    private func isFinal(_ response: ReceivedResponse, to request: ClientRequest) -> Bool {
        if intent.style == .plain { return response.status.isSuccessful }
        // Some servers report the stored completeness of the upload in the response that rejects the offset.
        if response.status == .conflict, request.kind == .append, let reported = response.offset,
            reported != request.offset
        {
            return false
        }
        if let reported = intent.dialect.completeness(of: response.head.fields) { return reported }
        // When the upload is complete, some servers omit the field for completeness, or send the field of another
        // version. An offset before the end means that the upload is not complete.
        guard response.status.isSuccessful, intent.dialect.completeness(of: request.fields) == true else {
            return false
        }
        guard request.kind == .append, let reported = response.offset, let length = intent.length else { return true }
        return reported >= length
    }

    // MARK: Progress

    private mutating func handleProgress(_ response: ReceivedResponse, to request: ClientRequest) {
        if let exceededSize { return abort(.tooLarge(limit: exceededSize)) }
        if request.kind == .create, !handleLocation(response) { return }
        guard intent.dialect.completeness(of: request.fields) == false else {
            // The request should have completed the upload, but according to the response the upload is not complete.
            if let reported = response.offset, reported > acknowledged {
                if accept(offset: reported) { phase = .append }
                return
            }
            return tryAgain(.retrieve, because: .offsetConflict)
        }
        let end = request.content.end(sent: response.sent) ?? acknowledged
        if response.hasSourceEnded, intent.length == nil, case .remaining = request.content {
            intent.length = end
            resumption?.length = end
        }
        let reported = request.kind == .append ? response.offset ?? end : response.offset ?? 0
        let before = acknowledged
        guard accept(offset: reported) else { return }
        if acknowledged == before, request.content.hasBytes, end > before {
            return tryAgain(.append, because: .offsetConflict)
        }
        phase = .append
    }

    /// Stores the upload resource of a final response; returns false if there is none to continue with.
    private mutating func handleLocation(_ response: ReceivedResponse) -> Bool {
        guard let location = response.head.location else {
            if resumption == nil { fail(.resumptionUnsupported(response.status)) }
            return resumption != nil
        }
        if let known = resumption {
            if known.uri != location.uri { abort(.locationChanged) }
            return known.uri == location.uri
        }
        guard isUsable(location) else {
            fail(.locationUnusable(location.relation))
            return false
        }
        adopt(location, now: response.now)
        record(limitsOf: response.head.fields, now: response.now)
        return true
    }

    // MARK: Retrieval

    private mutating func handleRetrieval(_ response: ReceivedResponse) {
        let status = response.status
        guard status.isSuccessful else {
            if status.isGone { return isExpired(response.now) ? fail(.expired) : handleMissingResource(response) }
            if status.isUnauthorized { return stop(.unauthorized(status)) }
            return status.isTransient ? tryLater(.retrieve, response) : stop(.refused(status))
        }
        guard let reported = response.offset else { return stop(.offsetUnknown(status)) }
        let reportedLength = response.head.fields.uploadInteger(UploadFieldName.length)
        if let reportedLength, let length = intent.length, reportedLength != length { return stop(.sourceChanged) }
        guard accept(offset: reported) else { return }
        isKnownToExist = true
        // The server still has the upload and has sent no new lifetime, so by its clock the lifetime has not passed.
        if isExpired(response.now) { resumption?.expires = nil }
        if intent.dialect.completeness(of: response.head.fields) == true { return handleCompletion(response) }
        if let exceededSize { return abort(.tooLarge(limit: exceededSize)) }
        phase = .append
    }

    /// Handles 404 or 410: the upload resource does not exist. After 404, an upload that was only announced is created
    /// again, unless the target may have processed its content already and must not process it twice.
    mutating func handleMissingResource(_ response: ReceivedResponse) {
        guard response.status == .notFound, isOnlyAnnounced, intent.method == .put || !isPossiblyComplete else {
            return fail(.gone(response.status))
        }
        forgetUpload()
        tryLater(.create, response)
    }

    private mutating func handleCompletion(_ response: ReceivedResponse) {
        if intent.dialect.isReplayExpected {
            phase = .replay(response.head)
        } else {
            endWithoutAnswer(response.head)
        }
    }

    /// Ends an upload that the server has completed, and whose response cannot be retrieved.
    mutating func endWithoutAnswer(_ head: ClientResponseHead) {
        completed = nil
        if let length = intent.length, acknowledged < length { return fail(.answerLost) }
        finish(head, isResponseLost: true)
    }

    private mutating func endReplay(of head: ClientResponseHead, _ response: ReceivedResponse) {
        let completeness = intent.dialect.completeness(of: response.head.fields)
        completed = nil
        if completeness ?? response.status.isSuccessful { return finish(response.head) }
        // A proxy may have sent this response.
        if completeness == nil, response.status.isTransient { return tryLater(.retrieve, response) }
        endWithoutAnswer(head)
    }

    // MARK: The limits of the target, and cancellation

    /// Whether the target announces resumable uploads of this version. A server of another version could treat the
    /// empty content of a careful creation as the complete file.
    private func announcesSupport(_ head: ClientResponseHead) -> Bool {
        head.status.isSuccessful && intent.dialect.understands(head.fields)
            && UploadLimits(parsing: head.fields, dialect: intent.dialect) != nil
    }

    mutating func endDiscovery(isSupported: Bool) {
        if intent.style == .automatic { intent.style = isSupported ? .careful : .optimistic }
        if let exceededSize { return abort(.tooLarge(limit: exceededSize)) }
        phase = resumption == nil ? .create : .retrieve
    }

    mutating func endCancellation(isConfirmed: Bool) {
        let failure = failure ?? .canceled
        // A failed cancellation can be repeated later. After other failures there is nothing to continue.
        if isConfirmed || failure != .canceled { resumption = nil }
        phase = .failed(failure)
    }
}

extension ClientRequest {
    /// The value of `Upload-Offset`; `nil` if the field is absent or invalid.
    var offset: Int64? { fields.uploadInteger(UploadFieldName.offset) }
}

extension Status {
    /// Whether the resource does not exist: 404 or 410.
    var isGone: Bool { self == .notFound || self == .gone }
}
