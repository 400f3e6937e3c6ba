import HTTPSemantics

extension ClientUpload {
    /// Handles the end of the current request without a final response.
    /// - Parameters:
    ///   - sent: the number of bytes of its content that were sent.
    ///   - sourceEnded: whether the source ended after these bytes.
    package mutating func interrupted(_ reason: ClientInterruption, sent: Int64, sourceEnded: Bool) {
        guard case .sending(let request) = phase else { return }
        if sourceEnded, intent.length == nil, case .remaining(let start, _) = request.content {
            intent.length = start + sent
            resumption?.length = intent.length
        }
        if intent.dialect.completeness(of: request.fields) == true, !request.content.exceeds(sent) {
            mayBeComplete = true
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
        // The target may have refused the complete content, so the response is requested again.
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
        case .otherOrigin: intent.allowsOtherOrigin
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
