import HTTPSemantics

/// The functions of the server that the daemon calls.
protocol RequestService: Sendable {
    /// The origin of a request on a connection from `peer` (`nil`: a Unix socket).
    func origin(of fields: Fields, peer: String?) -> RequestOrigin
    /// The client for which a connection from `peer` (`nil`: a Unix socket) is counted while it serves no forwarded
    /// request.
    func client(ofPeer peer: String?) -> ConnectionClient
    /// The client for which a connection from a trusted peer is counted while it serves this request; `nil`: the peer.
    func client(of fields: Fields, origin: RequestOrigin) -> ConnectionClient?
    /// The fields of every response to a request with `fields`, which can be incomplete.
    func responseFields(for fields: Fields, isSecure: Bool) -> Fields
    /// Starts to serve a request whose head is complete, and sets its principal.
    func begin(_ request: RequestContext, for target: RequestTarget) -> FirstStep
    /// Records a request that has ended.
    func record(_ summary: RequestSummary)
    /// Reports that content of a response could not be read or produced.
    func contentFailed(_ error: any Error, request: RequestID)
    /// Reports that a new connection exceeded the limit: open connections were closed for it, or it was rejected.
    /// - Parameter largest: the client with the most connections, and how many it had.
    func reachedConnectionLimit(closed: Int, isRejected: Bool, largest: (client: ConnectionClient, count: Int)?)
}
