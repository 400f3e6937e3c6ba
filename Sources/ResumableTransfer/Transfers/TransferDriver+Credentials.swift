import HTTPSemantics
import ResumableUpload

/// Other credentials after a 401 or 407. They come from the client's closure that refreshes credentials, or from the
/// handler of the transfer.
extension TransferDriver {
    /// Finds the source of other credentials after a response, before the state machine receives it. For a 401 to a
    /// request with the caller's credentials this is the client's closure, if there is one; otherwise the handler
    /// decides.
    /// - Throws: `authorizationFailed`, if the handler ends the transfer.
    func credentialSource(
        after result: TransportResult, to sent: TransferRequest, _ request: ClientRequest, at uri: RequestURI
    ) async throws(TransferError) -> CredentialRenewal.Source? {
        guard let head = result.head, head.status == .unauthorized || head.status == 407 else { return nil }
        if head.status == .unauthorized, client.credentials != nil, request.carriesCredentials,
            RequestURI(plan.request.uri)?.hasSameOrigin(as: uri) == true
        {
            return .refresh
        }
        guard let handler = plan.handler, !operation.isDeleting else { return nil }
        let response = TransferResponse(head, content: result.content)
        switch await control.result(of: { try await handler.challenged(by: response, to: sent) }) {
        // After a stop request nothing more is sent: the stop decides how the transfer ends.
        case _ where control.stop != nil: return .handler
        case .success(let hasCredentials): return hasCredentials ? .handler : nil
        case .failure(let failure):
            throw TransferError(
                .authorizationFailed, "The request was not authorized.", response: response, underlying: failure)
        }
    }

    /// Gets the other credentials, and continues with them.
    func refreshCredentials() async throws(TransferError) {
        // The handler has chosen its credentials already.
        if operation.credentialSource == .handler { return operation.credentialsRefreshed(isFresh: false) }
        guard let refresh = client.credentials, let response else {
            throw TransferError(.internalFailure, "The credentials cannot be refreshed.")
        }
        guard let wait = refresh.join(rejected: credentials, response) else {
            return operation.credentialsRefreshed(isFresh: false)
        }
        let outcome: CredentialRefresh.Outcome?
        if operation.isDeleting {
            // The stop was requested before this wait, and does not end it. So the wait needs a timeout.
            let timeout = Task {
                try await Task.sleep(for: .seconds(30))
                wait.leave()
            }
            outcome = await wait.outcome()
            timeout.cancel()
        } else {
            outcome = await control.interruptible(by: { wait.leave() }, while: { await wait.outcome() })
        }
        switch outcome {
        case .success?:
            log.write(.notice, "The credentials were refreshed.")
            operation.credentialsRefreshed(isFresh: true)
        case nil where !operation.isDeleting: return
        case .failure(let failure)?: throw refreshError(failure)
        case nil: throw refreshError(nil)
        }
    }

    private func refreshError(_ failure: (any Error)?) -> TransferError {
        TransferError(
            .authorizationFailed, "The credentials could not be refreshed.", response: response, underlying: failure)
    }
}
