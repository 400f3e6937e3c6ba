/// The content of a request as a part of a representation.
package enum RequestContent: Sendable, Hashable {
    /// Neither content nor `Content-Length`.
    case none
    /// `Content-Length: 0`.
    case empty
    /// `count` bytes of the representation, at least one.
    case range(from: Int64, count: Int64)
    /// All bytes from `from` on, until the source ends or `atMost` bytes are sent. Their number is not known in
    /// advance.
    case remaining(from: Int64, atMost: Int64?)
}

extension RequestContent {
    /// The offset of the first byte of the content in the representation; 0 if the content is empty.
    package var start: Int64 {
        switch self {
        case .none, .empty: 0
        case .range(let start, _), .remaining(let start, _): start
        }
    }

    /// The size of the content in bytes; `nil` if it is not known in advance.
    package var count: Int64? {
        switch self {
        case .none, .empty: 0
        case .range(_, let count): count
        case .remaining: nil
        }
    }

    /// Whether the content has bytes of the source.
    package var hasBytes: Bool {
        switch self {
        case .none, .empty: false
        case .range, .remaining: true
        }
    }

    /// The offset in the representation after the last byte of the content; `nil` if there is no content.
    /// - Parameter sent: the number of bytes that were sent, if the size of the content was not known in advance.
    package func end(sent: Int64) -> Int64? {
        switch self {
        case .none, .empty: nil
        case .range(let start, let count): start + count
        case .remaining(let start, _): start + sent
        }
    }

    /// Whether the content has, or may have, more than `count` bytes.
    package func exceeds(_ count: Int64) -> Bool {
        switch self {
        case .none, .empty: false
        case .range(_, let own): own > count
        case .remaining(_, let limit): limit.map { $0 > count } ?? true
        }
    }
}

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
