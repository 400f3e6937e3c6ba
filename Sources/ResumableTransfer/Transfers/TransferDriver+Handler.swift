import HTTPSemantics
import ResumableUpload

/// The decisions of the transfer's handler.
extension TransferDriver {
    /// Asks the handler about a redirection or a challenge, before the state machine receives the response.
    /// - Throws: `authorizationFailed`, if the handler ends the transfer.
    func consultHandler(
        about result: inout TransportResult, to sent: TransferRequest, _ request: ClientRequest, from uri: RequestURI
    ) async throws(TransferError) {
        guard let handler = plan.handler, let head = result.head, !operation.isDeleting else { return }
        let response = TransferResponse(status: head.status, fields: head.fields, content: result.content)
        if head.status == .unauthorized || head.status == 407 {
            try await consult(handler, about: response, to: sent, request, from: uri)
        } else if operation.follows(head.status, to: request), let location = head.location {
            let proposed = proposal(location, request)
            let decision = await control.result { await handler.redirected(by: response, to: proposed) }
            switch decision {
            // After a stop request nothing more is sent.
            case .failure, .success(.follow): return
            case .success(.redirect(let target)): result.head?.location = uri.location(target)?.allowed
            case .success(.decline):
                result.head?.location = nil
                operation.declineRedirection()
            }
        }
    }

    private func consult(
        _ handler: any ExchangeHandler, about response: TransferResponse, to sent: TransferRequest,
        _ request: ClientRequest, from uri: RequestURI
    ) async throws(TransferError) {
        guard response.status != .unauthorized || !canRefreshCredentials(for: request, to: uri) else { return }
        switch await control.result(of: { try await handler.challenged(by: response, to: sent) }) {
        // After a stop request nothing more is sent: the stop decides how the transfer ends.
        case _ where control.stop != nil: operation.hasOtherCredentials = true
        case .success(let isAnswered): operation.hasOtherCredentials = isAnswered
        case .failure(let failure):
            throw TransferError(
                .authorizationFailed, "The request was not authorized.", response: response, underlying: failure)
        }
    }

    /// The request that follows a redirection, for the handler.
    private func proposal(_ location: ResolvedLocation, _ request: ClientRequest) -> TransferRequest {
        var fields = client.configuration.fields.merging(operation.callerFields)
        if request.kind == .create {
            for field in request.fields where !Fields.belongsToTransfer(field.name) {
                fields.set(field.name, field.value)
            }
        }
        let isTrusted = location.relation == .sameOrigin && request.carriesCredentials
        return TransferRequest(location.uri, method: request.method, fields: isTrusted ? fields : fields.withoutSecrets)
    }
}

extension ResolvedLocation {
    /// The same location, also if it is an http URI and the last one was https.
    fileprivate var allowed: ResolvedLocation {
        relation == .insecure ? ResolvedLocation(uri: uri, relation: .otherOrigin) : self
    }
}
