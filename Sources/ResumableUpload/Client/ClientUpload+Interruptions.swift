import HTTPSemantics

extension ClientUpload {
    /// Handles the end of the current request without a final response.
    /// - Parameters:
    ///   - sent: the number of bytes of its content that were sent.
    ///   - hasSourceEnded: whether the source ended after these bytes.
    package mutating func interrupted(_ reason: ClientInterruption, sent: Int64, hasSourceEnded: Bool) {
        guard case .sending(let request) = phase else { return }
        if hasSourceEnded, intent.length == nil, case .remaining(let start, _) = request.content {
            intent.length = start + sent
            resumption?.length = intent.length
        }
        if intent.dialect.completeness(of: request.fields) == true, !request.content.exceeds(sent) {
            isPossiblyComplete = true
        }
        if let plan = abort {
            abort = nil
            switch plan {
            case .abort(let failure): return abort(failure)
            case .sendInParts:
                // If nothing was sent, the server has received nothing, so the offset need not be retrieved.
                phase = sent == 0 && request.kind == .create ? .append : .retrieve
                return
            }
        }
        switch request.kind {
        case .cancel: return endCancellation(isConfirmed: false)
        case .discover: return endDiscovery(isSupported: false)
        case .create, .append, .retrieve, .download: break
        }
        // The target may have rejected the content in the response that was lost. So a success that was received before is
        // not used, and the response is requested again.
        completed = nil
        guard reason != .unusableConnection else { return stop(.exhausted(lastReason: reason)) }
        if resumption != nil { return tryAgain(.retrieve, because: reason) }
        if isRepeatable(request, reason, sent: sent) {
            tryAgain(.create, because: reason)
        } else {
            fail(.notResumable(reason))
        }
    }

    /// Whether a creation without any response can be repeated.
    private func isRepeatable(_ request: ClientRequest, _ reason: ClientInterruption, sent: Int64) -> Bool {
        if reason == .unreachable || intent.method == .put { return true }
        if intent.style != .plain, intent.dialect.completeness(of: request.fields) == false { return true }
        // The server cannot have processed content that was not sent.
        return sent == 0 && request.content.exceeds(0)
    }
}

extension ClientUpload {
    /// Handles an interim response to the current request. Only a 104 about the upload has an effect.
    /// - Parameter now: seconds since 1970.
    package mutating func interim(_ head: ClientResponseHead, now: Int64) -> InterimReaction {
        guard case .sending(let request) = phase, head.status == .uploadResumptionSupported, abort == nil,
            intent.style != .plain, intent.dialect.understands(head.fields)
        else { return .proceed }
        var reaction = InterimReaction.proceed
        if request.kind == .create, let location = head.location {
            if let known = resumption, known.uri != location.uri { return end(.abort(.locationChanged)) }
            // An unusable location is ignored: without an interruption the upload can still succeed.
            if isUsable(location) {
                adopt(location, now: now)
                isOnlyAnnounced = true
            }
            reaction = .openGate
        }
        record(limitsOf: head.fields, now: now)
        guard resumption != nil else { return reaction }
        if let exceededSize { return end(.abort(.tooLarge(limit: exceededSize))) }
        if let limit = limits.maxAppendSize, request.content.exceeds(limit) { return end(.sendInParts) }
        if request.kind == .create || request.kind == .append,
            let offset = head.fields.uploadInteger(UploadFieldName.offset)
        {
            if let problem = problem(with: offset) { return end(.abort(problem)) }
            isOnlyAnnounced = false
            record(offset: offset)
        }
        return reaction
    }

    private mutating func end(_ plan: AbortPlan) -> InterimReaction {
        abort = plan
        return .abort
    }

    func isUsable(_ location: ResolvedLocation) -> Bool {
        switch location.relation {
        case .sameOrigin: true
        case .otherOrigin: intent.isOtherOriginAllowed
        case .insecure: false
        }
    }

    /// Stores the upload resource, so that the upload can be resumed.
    mutating func adopt(_ location: ResolvedLocation, now: Int64) {
        isOwnCreation = true
        isUploadForeign = location.relation == .otherOrigin
        resumption = UploadResumption(
            uri: location.uri, dialect: intent.dialect, acknowledged: acknowledged, length: intent.length,
            limits: limits, expires: nil)
    }
}

extension ClientUpload {
    // MARK: Refusals of a creation or an append

    mutating func handleRefusal(_ response: ReceivedResponse, to request: ClientRequest) {
        let status = response.status
        if status.isUnauthorized { return stop(.unauthorized(status)) }
        if response.problem?.isDigestMismatch == true { return abort(.digestMismatch) }
        if status == .contentTooLarge { return handleTooLarge(response, request) }
        if request.kind == .append {
            if status.isGone { return handleMissingResource(response) }
            if status == .conflict { return handleConflict(response, request) }
        }
        guard status.isTransient else {
            // Another run can still resume an upload that was in progress.
            return request.kind == .append ? stop(.refused(status)) : fail(.refused(status))
        }
        if resumption != nil { return tryLater(.retrieve, response) }
        // Without an upload resource the entire content would be sent again, which is allowed only if the first attempt
        // had no effect.
        let isRepeatable =
            intent.method == .put || response.sent == 0 || status == .tooManyRequests || status == .serviceUnavailable
        if isRepeatable { tryLater(.create, response) } else { fail(.refused(status)) }
    }

    mutating func tryLater(_ phase: Phase, _ response: ReceivedResponse) {
        tryAgain(
            phase, after: retry.retryAfter(response.head.fields, now: response.now), because: .status(response.status))
    }

    private mutating func handleConflict(_ response: ReceivedResponse, _ request: ClientRequest) {
        guard let reported = response.offset ?? response.problem?.expectedOffset, reported != request.offset else {
            return tryAgain(.retrieve, because: .offsetConflict)
        }
        if let problem = problem(with: reported) { return abort(problem) }
        let before = acknowledged
        record(offset: reported)
        // A changed offset is progress. An unchanged one could be reported forever, so it counts as a failed attempt.
        if acknowledged == before { tryAgain(.retrieve, because: .offsetConflict) } else { phase = .append }
    }

    /// 413: content of this size is not sent again (draft section 4.1.4).
    private mutating func handleTooLarge(_ response: ReceivedResponse, _ request: ClientRequest) {
        if let exceededSize { return abort(.tooLarge(limit: exceededSize)) }
        guard intent.style != .plain, let size = request.content.size(sent: response.sent),
            let smaller = bound.below(size)
        else { return abort(.tooLarge(limit: limits.maxSize)) }
        learnedMax = min(learnedMax ?? .max, smaller)
        // A limit of age does not explain the rejection.
        let areLimitsKnown = limits != UploadLimits(maxAge: limits.maxAge)
        if !areLimitsKnown, !hasDiscovered {
            hasDiscovered = true
            phase = .discover
        } else {
            phase = resumption == nil ? .create : .retrieve
        }
    }

    // MARK: Redirections

    private static let maxRedirections = 5

    /// Follows a redirection: after 307 and 308 the request is sent to another URI with the same method and content
    /// (RFC 9110 sections 15.4.8 and 15.4.9).
    mutating func follow(_ head: ClientResponseHead, of request: ClientRequest) {
        redirections += 1
        guard let location = head.location else { return stop(.refused(head.status)) }
        guard redirections <= Self.maxRedirections else { return stop(.tooManyRedirects) }
        guard location.relation != .insecure else { return stop(.locationUnusable(.insecure)) }
        let isForeign = location.relation == .otherOrigin
        switch request.kind {
        case .create, .discover:
            if isForeign { isTargetForeign = true }
            target = .other(location.uri)
            // The upload resource of a redirected creation is not used.
            if request.kind == .create { forgetUpload() }
            phase = request.kind == .create ? .create : .discover
        case .append, .retrieve, .cancel, .download:
            guard !isForeign || intent.isOtherOriginAllowed else { return stop(.locationUnusable(.otherOrigin)) }
            if isForeign { isUploadForeign = true }
            if head.status == .permanentRedirect {
                temporaryURI = nil
                resumption?.uri = location.uri
            } else {
                temporaryURI = location.uri
            }
            phase = completed.map { .replay($0) } ?? (request.kind == .append ? .append : .retrieve)
            completed = nil
        }
    }
}

extension RequestContent {
    /// The size of content that the server rejected as too large, after `sent` bytes of it were sent; `nil` if it was
    /// empty.
    func size(sent: Int64) -> Int64? {
        switch self {
        case .none, .empty: nil
        case .range(_, let count): count
        case .remaining(_, let limit): limit ?? max(sent, Self.unknownSize)
        }
    }

    /// The assumed size of content of unknown length that was rejected before much of it was sent.
    private static let unknownSize: Int64 = 16 << 20
}

extension ClientUpload {
    /// Whether the upload continues with other credentials: the request is then made again.
    func shouldRefreshCredentials(after head: ClientResponseHead) -> Bool {
        credentials.isPossible(after: head.status)
            // The application's response to the complete upload is final.
            && (intent.style == .plain || intent.dialect.completeness(of: head.fields) != true)
    }

    /// Requests other credentials. After that an upload with an upload resource retrieves its offset, so that no byte
    /// that the server has is sent again.
    mutating func refreshCredentials(for request: ClientRequest) {
        let resumption = resumption
        let following: Phase =
            switch request.kind {
            case .discover: .discover
            case .cancel: .cancel(failure ?? .canceled)
            case .create where resumption == nil: .create
            case .create, .append, .retrieve, .download: completed.map { .replay($0) } ?? .retrieve
            }
        completed = nil
        phase = .refreshCredentials(following)
    }

    /// Continues after the credentials were replaced.
    /// - Parameter isFresh: as for ``CredentialRenewal/noteRenewal(isFresh:)``.
    package mutating func credentialsRefreshed(isFresh: Bool) {
        guard case .refreshCredentials(let following) = phase else { return }
        credentials.noteRenewal(isFresh: isFresh)
        phase = following
    }
}
