import HTTPSemantics

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
            case .cancel: .cancel(failure ?? .cancelled)
            case .create where resumption == nil: .create
            case .create, .append, .retrieve, .download: completed.map { .replay($0) } ?? .retrieve
            }
        completed = nil
        phase = .refreshCredentials(following)
    }

    /// Reports that there are other credentials.
    /// - Parameter isFresh: as for ``CredentialRenewal/noteRenewal(isFresh:)``.
    package mutating func credentialsRefreshed(isFresh: Bool) {
        guard case .refreshCredentials(let following) = phase else { return }
        credentials.noteRenewal(isFresh: isFresh)
        phase = following
    }
}
