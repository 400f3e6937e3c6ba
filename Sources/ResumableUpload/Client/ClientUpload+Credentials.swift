import HTTPSemantics

extension ClientUpload {
    /// Whether the upload continues with new credentials: the request is then made again. If the server has rejected
    /// fresh credentials, another refresh would not help.
    func shouldRefreshCredentials(after head: ClientResponseHead) -> Bool {
        let isPossible =
            hasOtherCredentials
            ? [401, 407].contains(head.status)
            : head.status == .unauthorized && canRefreshCredentials && !hasFreshCredentials
        return isPossible
            // The application's response to the complete upload is final.
            && (intent.style == .plain || intent.dialect.completeness(of: head.fields) != true)
    }

    /// Requests new credentials. After that an upload with an upload resource retrieves its offset, so that no byte
    /// that the server has is sent again.
    mutating func refreshCredentials(for request: ClientRequest) {
        let resumption = resumption
        let following: Phase =
            switch request.kind {
            case .discover: .discover
            case .cancel: .cancel(failure ?? .cancelled)
            case .create where resumption == nil: .create
            case .create, .append, .retrieve, .download: completed.map { .replay($0) } ?? .retrieve
            }
        completed = nil
        phase = .refreshCredentials(following)
    }

    /// Reports that the credentials were refreshed.
    /// - Parameter isFresh: whether they were requested after the server had rejected those of the last request. False
    ///   if newer credentials already existed: they may be old, too, so another refresh is allowed.
    package mutating func credentialsRefreshed(isFresh: Bool) {
        guard case .refreshCredentials(let following) = phase else { return }
        hasOtherCredentials = false
        hasFreshCredentials = isFresh
        phase = following
    }
}
