/// The head of an interim or final response that a client has received.
package struct ClientResponseHead: Sendable, Hashable {
    package var status: Status
    package var fields: Fields
    /// `Location`; `nil` if it is absent or malformed.
    package var location: ResolvedLocation?
    /// The HTTP version as in the status line: "HTTP/1.1", "HTTP/2".
    package var version: String

    package init(
        status: Status, fields: Fields, location: ResolvedLocation? = nil, version: String = "HTTP/1.1"
    ) {
        self.status = status
        self.fields = fields
        self.location = location
        self.version = version
    }
}

/// The `Location` of a response, resolved against the URI of the request (RFC 9110 section 10.2.2).
package struct ResolvedLocation: Sendable, Hashable {
    /// How the location relates to the URI of the request.
    package enum Relation: Sendable, Hashable {
        case sameOrigin
        case otherOrigin
        /// The request used https, and the location is http.
        case insecure
    }

    /// The absolute URI.
    package let uri: String
    package let relation: Relation

    package init(uri: String, relation: Relation) {
        self.uri = uri
        self.relation = relation
    }
}
