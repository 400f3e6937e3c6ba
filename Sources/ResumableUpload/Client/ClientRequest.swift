import HTTPSemantics

/// A request that an upload or a download on the client has to send.
package struct ClientRequest: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case create
        case append
        /// HEAD of the upload resource, for its offset (draft section 4.3).
        case retrieve
        /// DELETE of the upload resource (draft section 4.5).
        case cancel
        /// OPTIONS, for the limits of the target (draft section 4.1.4).
        case discover
        /// GET of the target, for a representation or its remaining part. Only downloads send it.
        case download
    }

    /// The resource of a request.
    package enum Resource: Sendable, Hashable {
        /// The resource that the caller named.
        case target
        /// The upload resource, whose URI is a secret.
        case upload(String)
        /// The absolute URI to which the target redirected.
        case other(String)
    }

    package enum Content: Sendable, Hashable {
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

    package var kind: Kind
    package var resource: Resource
    package var method: Method
    /// The fields of the protocol and, for a creation, those of the intent; never credentials. A download has `Range`
    /// and `If-Range`, or no fields.
    package var fields: Fields
    package var content: Content
    /// Whether the content is sent only after ``InterimReaction/openGate``, or after a timeout of the sender. This does
    /// not apply if the request ``isSentAtOnce(with:)``.
    package var awaitsInterim: Bool
    /// Whether credentials are sent; false for a request to another origin.
    package var carriesCredentials: Bool

    package init(
        kind: Kind, resource: Resource, method: Method, fields: Fields, content: Content, awaitsInterim: Bool = false,
        carriesCredentials: Bool = true
    ) {
        self.kind = kind
        self.resource = resource
        self.method = method
        self.fields = fields
        self.content = content
        self.awaitsInterim = awaitsInterim
        self.carriesCredentials = carriesCredentials
    }
}

extension ClientRequest {
    /// The maximum size in bytes of content that is sent without waiting for the upload resource. A server can store
    /// content of this size at once, if it arrives together with the head.
    package static let maxSizeAtOnce: Int64 = 256 << 10

    /// Whether the content does not wait until the server has announced the upload resource. If the request is
    /// interrupted before that, all of the content is sent again, and the target may process it twice. So the content
    /// has to be short, and a repetition must have the same result: the request is a PUT (RFC 9110 section 9.2.2)
    /// without a precondition (section 13.1), which would be false after the first success.
    /// - Parameter fields: all fields that are sent.
    package func isSentAtOnce(with fields: Fields) -> Bool {
        method == .put && !content.exceeds(Self.maxSizeAtOnce)
            && !fields.contains { $0.name.lowercased().hasPrefix("if-") }
    }

    /// Whether the path of the URI is a secret: it is the path of an upload resource, or of a redirection that may lead
    /// to one.
    package var isPathSecret: Bool { kind != .download && resource != .target }
}

extension ClientRequest.Content {
    /// The offset of the first byte of the content in the representation; 0 if the content is empty.
    package var start: Int64 {
        switch self {
        case .none, .empty: 0
        case .range(let start, _), .remaining(let start, _): start
        }
    }

    /// The size of the content in bytes; `nil` if the content ends with the source.
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

    /// The offset at the end of the content, after `sent` bytes were sent and the source ended or the maximum was
    /// reached.
    func end(sent: Int64) -> Int64? {
        switch self {
        case .none, .empty: nil
        case .range(let start, let count): start + count
        case .remaining(let start, _): start + sent
        }
    }

    /// Whether the content has, or may have, more than `count` bytes.
    func exceeds(_ count: Int64) -> Bool {
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

/// A `Location`, resolved against the URI of the request that it answers (RFC 9110 section 10.2.2).
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

/// The parts of a problem document (RFC 9457) that determine how an upload continues.
package struct ProblemType: Sendable, Hashable {
    /// The URI of the problem type.
    package var type: String
    /// `expected-offset` of a mismatching offset (draft section 7.1), in bytes.
    package var expectedOffset: Int64?

    package init(type: String, expectedOffset: Int64?) {
        self.type = type
        self.expectedOffset = expectedOffset
    }

    /// Whether the problem is that the received bytes do not match their digest.
    var isDigestMismatch: Bool { type.hasSuffix("digest-mismatch") }
}
