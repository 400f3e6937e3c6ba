import HTTPSemantics

/// The result of ``RequestService/begin(_:)``: how a request is served.
struct DispatchedRequest {
    let started: StartedExchange
    /// The fields of every response to the request.
    let fields: Fields
    /// The principal that sent the request; `nil` if it is unknown.
    let principal: String?

    init(_ started: StartedExchange, fields: Fields, principal: String? = nil) {
        self.started = started
        self.fields = fields
        self.principal = principal
    }
}
