import HTTPSemantics

extension ClientUpload {
    // MARK: Refusals of a creation or an append

    mutating func handleRefusal(_ answer: Answer, to request: ClientRequest) {
        let status = answer.status
        if status.isUnauthorized { return stop(.unauthorized(status)) }
        if answer.problem?.isDigestMismatch == true { return abort(.digestMismatch) }
        if status == .contentTooLarge { return handleTooLarge(answer, request) }
        if request.kind == .append {
            if status.isGone { return handleMissingResource(answer) }
            if status == .conflict { return handleConflict(answer, request) }
        }
        guard status.isTransient else {
            // Another run can still resume an upload that was in progress.
            return request.kind == .append ? stop(.refused(status)) : fail(.refused(status))
        }
        if resumption != nil { return tryLater(.retrieve, answer) }
        // Without an upload resource the entire content would be sent again, which is allowed only if the first attempt
        // had no effect.
        let isRepeatable =
            intent.method == .put || answer.sent == 0 || status == .tooManyRequests || status == .serviceUnavailable
        if isRepeatable { tryLater(.create, answer) } else { fail(.refused(status)) }
    }

    mutating func tryLater(_ phase: Phase, _ answer: Answer) {
        tryAgain(
            phase, after: retry.retryAfter(answer.head.fields, now: answer.now), because: .status(answer.status))
    }

    private mutating func handleConflict(_ answer: Answer, _ request: ClientRequest) {
        guard let reported = answer.offset ?? answer.problem?.expectedOffset, reported != request.offset else {
            return tryAgain(.retrieve, because: .offsetConflict)
        }
        if let problem = problem(with: reported) { return abort(problem) }
        let before = acknowledged
        record(offset: reported)
        // A changed offset is progress. An unchanged one could be reported forever, so it counts as a failed attempt.
        if acknowledged == before { tryAgain(.retrieve, because: .offsetConflict) } else { phase = .append }
    }

    /// 413: content of this size is not sent again (draft section 4.1.4).
    private mutating func handleTooLarge(_ answer: Answer, _ request: ClientRequest) {
        if let exceededSize { return abort(.tooLarge(limit: exceededSize)) }
        guard intent.style != .plain, let size = request.content.size(sent: answer.sent),
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

    /// After 307 and 308 the request is sent to another URI with the same method and content (RFC 9110 sections 15.4.8
    /// and 15.4.9).
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
            guard !isForeign || intent.allowsOtherOrigin else { return stop(.locationUnusable(.otherOrigin)) }
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

extension ClientRequest.Content {
    /// The size of content that the server rejected as too large, of which `sent` bytes were sent; `nil` if it was
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
