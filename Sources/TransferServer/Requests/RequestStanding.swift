import HTTPSemantics

/// What the server made of a request's head.
struct RequestStanding {
    let served: Served
    /// They go with every response to the request.
    let fields: Fields
    /// Who asks, where that is known.
    let principal: String?

    init(_ served: Served, fields: Fields, principal: String? = nil) {
        self.served = served
        self.fields = fields
        self.principal = principal
    }
}
