import HTTPSemantics

extension TransferClient {
    /// Asks once: nothing is sent again, no redirection is followed.
    /// - Parameter request: its method has no content, such as GET.
    /// - Returns: whatever final response comes, with up to 64 KiB of its content.
    package func fetch(_ request: TransferRequest) async throws(TransferError) -> TransferResponse {
        guard let uri = RequestURI(request.uri) else {
            throw TransferError(.invalidRequest, "The URI of the request is no absolute one of http or https.")
        }
        let exchange = core.engine.start(
            TransportRequest(
                method: request.method.rawValue, uri: uri.text, fields: configuration.fields.merging(request.fields),
                content: nil, gate: nil, stallTimeout: configuration.stallTimeout, rateLimit: nil,
                settings: TransportSettings(configuration),
                receive: { _ in .collect(limit: 64 << 10, within: .seconds(30)) }))
        let result = await exchange.result()
        if let failure = result.failure { throw TransferError(failure, asking: uri) }
        guard let head = result.head else { throw TransferError(.connectionLost, "There was no response.") }
        return TransferResponse(status: head.status, fields: head.fields, content: result.content)
    }
}
