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

    package var kind: Kind
    package var resource: Resource
    package var method: Method
    /// The fields of the protocol and, for a creation, those of the intent; never credentials. A download has `Range`
    /// and `If-Range`, or no fields.
    package var fields: Fields
    package var content: RequestContent
    /// Whether the content is sent only after ``InterimReaction/openGate``, or after a timeout of the sender. This does
    /// not apply if the request ``isSentAtOnce(with:)``.
    package var awaitsInterim: Bool
    /// Whether credentials are sent; false for a request to another origin.
    package var carriesCredentials: Bool

    package init(
        kind: Kind, resource: Resource, method: Method, fields: Fields, content: RequestContent,
        awaitsInterim: Bool = false,
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
