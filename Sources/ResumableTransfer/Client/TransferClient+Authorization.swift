import HTTPSemantics

extension TransferClient {
    /// A request as it goes out: with credentials to the origin alone that the caller named, and with what `authorize` adds
    /// there.
    ///
    /// - Parameters:
    ///   - target: what the caller named. Redirections and resume data may lead to another origin.
    ///   - restore: sets what `authorize` may not change.
    /// - Throws: `authorizationFailed` if `authorize` fails, or is canceled because the transfer was asked to stop.
    func outgoing<Value>(
        _ request: TransferRequest, carriesCredentials: Bool, target: String, control: TransferControl<Value>,
        restore: (inout TransferRequest) -> Void
    ) async throws(TransferError) -> TransferRequest {
        var outgoing = request
        guard carriesCredentials, let target = RequestURI(target),
            RequestURI(request.uri)?.hasSameOrigin(as: target) == true
        else {
            outgoing.fields.remove("Host")
            outgoing.fields = outgoing.fields.withoutSecrets
            return outgoing
        }
        if let credentials = target.basicCredentials, !outgoing.fields.contains("Authorization") {
            outgoing.fields.append("Authorization", credentials)
        }
        guard let authorize = configuration.authorize else { return outgoing }
        let task = Task { [outgoing] in
            var authorized = outgoing
            try await authorize(&authorized)
            return authorized
        }
        switch await control.interruptible(by: { task.cancel() }, while: { await task.result }) {
        case .success(var authorized):
            restore(&authorized)
            return authorized
        case .failure(let failure):
            throw TransferError(
                .authorizationFailed, "The request could not be authorized.", underlying: "\(failure)")
        }
    }
}
