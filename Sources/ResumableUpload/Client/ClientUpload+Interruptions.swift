import HTTPSemantics

extension ClientUpload {
    /// Handles the end of the current request without a final response.
    /// - Parameters:
    ///   - sent: bytes of its content that were sent.
    ///   - sourceEnded: whether the source ended with them.
    package mutating func interrupted(_ reason: ClientInterruption, sent: Int64, sourceEnded: Bool) {
        guard case .sending(let request) = phase else { return }
        if sourceEnded, intent.length == nil, case .remaining(let start, _) = request.content {
            intent.length = start + sent
            resumption?.length = intent.length
        }
        if let plan = abort {
            abort = nil
            switch plan {
            case .abort(let failure): return abort(failure)
            case .sendInParts:
                // If nothing was sent, the server cannot have received anything.
                phase = sent == 0 && request.kind == .create ? .append : .retrieve
                return
            }
        }
        switch request.kind {
        case .cancel: return endCancellation(isConfirmed: false)
        case .discover: return endDiscovery(isSupported: false)
        case .create, .append, .retrieve, .download: break
        }
        if let completed { return endWithoutAnswer(completed) }
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
