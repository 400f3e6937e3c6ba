import HTTPSemantics

/// What the server made of a request's head.
struct DispatchedRequest {
    let started: StartedExchange
    /// They go with every response to the request.
    let fields: Fields
    /// Who asks, where that is known.
    let principal: String?

    init(_ started: StartedExchange, fields: Fields, principal: String? = nil) {
        self.started = started
        self.fields = fields
        self.principal = principal
    }
}
