import HTTPSemantics
import ResumableUpload

/// The decisions of the transfer's handler about redirections.
extension TransferDriver {
    /// Asks the handler about a redirection, before the state machine receives the response.
    func consultHandler(
        aboutRedirectionIn result: inout TransportResult, to request: ClientRequest, from uri: RequestURI
    ) async {
        guard let handler = plan.handler, let head = result.head, !operation.isDeleting,
            operation.follows(head.status, to: request), let location = head.location
        else { return }
        let response = TransferResponse(head, content: result.content)
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
    /// The same location, which may be followed even from https to http.
    fileprivate var allowed: ResolvedLocation {
        relation == .insecure ? ResolvedLocation(uri: uri, relation: .otherOrigin) : self
    }
}
