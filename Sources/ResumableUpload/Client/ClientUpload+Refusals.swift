import HTTPSemantics

extension ClientUpload {
    // MARK: Refusals of a creation or an append

    mutating func handleRefusal(_ answer: Answer, to request: ClientRequest) {
        let status = answer.status
        if status.isUnauthorized { return stop(.unauthorized(status)) }
        if answer.problem?.isDigestMismatch == true { return abort(.digestMismatch) }
        if status == .contentTooLarge { return handleTooLarge(answer, request) }
        if request.kind == .append {
            if status.isGone { return fail(.gone(status)) }
            if status == .conflict { return handleConflict(answer, request) }
        }
        guard status.isTransient else {
            // Of an upload that was under way another run may still make something.
            return request.kind == .append ? stop(.refused(status)) : fail(.refused(status))
        }
        if resumption != nil { return tryLater(.retrieve, answer) }
        // Without an upload resource everything would be sent again: only if nothing of it had an effect.
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
        // An offset that moves is progress; one that does not may be told for ever.
        if acknowledged == before { tryAgain(.retrieve, because: .offsetConflict) } else { phase = .append }
    }

    /// 413: what was too large is never sent again (draft section 4.1.4).
    private mutating func handleTooLarge(_ answer: Answer, _ request: ClientRequest) {
        if let exceededSize { return abort(.tooLarge(limit: exceededSize)) }
        guard intent.style != .plain, let size = request.content.size(sent: answer.sent),
            let smaller = bound.below(size)
        else { return abort(.tooLarge(limit: limits.maxSize)) }
        learnedMax = min(learnedMax ?? .max, smaller)
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

    /// 307 and 308 repeat the request elsewhere, with its method and content (RFC 9110 sections 15.4.8 and 15.4.9).
    mutating func follow(_ head: UploadResponseHead, of request: ClientRequest) {
        redirections += 1
        guard let location = head.location else { return stop(.refused(head.status)) }
        guard redirections <= Self.maxRedirections else { return stop(.redirectLoop) }
        guard location.relation != .insecure else { return stop(.locationUnusable(.insecure)) }
        let isForeign = location.relation == .otherOrigin
        switch request.kind {
        case .create, .discover:
            if isForeign { isTargetForeign = true }
            target = .other(location.uri)
            // What a creation that is redirected has told is of no use any more.
            if request.kind == .create { forgetUpload() }
            phase = request.kind == .create ? .create : .discover
        case .append, .retrieve, .cancel:
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
    /// Bytes of it that a server found too many, of which `sent` went out; `nil` where there were none.
    func size(sent: Int64) -> Int64? {
        switch self {
        case .none, .empty: nil
        case .range(_, let count): count
        case .remaining(_, let limit): limit ?? max(sent, Self.unknownSize)
        }
    }

    /// What content of unknown length counts as that was refused before much of it went out.
    private static let unknownSize: Int64 = 16 << 20
}
