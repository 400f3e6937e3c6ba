import HTTPSemantics

/// The head of an interim or final response, as the client's side of an upload sees it.
public struct UploadResponseHead: Sendable, Hashable {
    public var status: Status
    public var fields: Fields
    /// `Location`; `nil` where there is none or it cannot be understood.
    public var location: ResolvedLocation?

    public init(status: Status, fields: Fields, location: ResolvedLocation?) {
        self.status = status
        self.fields = fields
        self.location = location
    }
}

/// A `Location`, resolved against the URI of the request that it answers (RFC 9110 section 10.2.2).
public struct ResolvedLocation: Sendable, Hashable {
    /// How it relates to the URI of the request.
    public enum Relation: Sendable, Hashable {
        case sameOrigin
        case otherOrigin
        /// From https to http.
        case insecure
    }

    /// Absolute.
    public let uri: String
    public let relation: Relation

    public init(uri: String, relation: Relation) {
        self.uri = uri
        self.relation = relation
    }
}
