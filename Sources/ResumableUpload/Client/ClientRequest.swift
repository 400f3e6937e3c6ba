import HTTPSemantics

/// A request that the client's side of an upload wants to be sent.
package struct ClientRequest: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case create
        case append
        /// Of the offset (draft section 4.3).
        case retrieve
        /// DELETE of the upload resource (draft section 4.5).
        case cancel
        /// OPTIONS, for the limits of the target (draft section 4.1.4).
        case discover
    }

    /// Whom it is for.
    package enum Resource: Sendable, Hashable {
        /// What the caller named.
        case target
        /// The upload resource, whose URI is a secret.
        case upload(String)
        /// Where a redirection of the target led.
        case other(String)
    }

    package enum Content: Sendable, Hashable {
        /// Neither content nor `Content-Length`.
        case none
        /// `Content-Length: 0`.
        case empty
        /// `count` bytes of the representation, at least one.
        case range(from: Int64, count: Int64)
        /// All bytes that come until the source ends or `atMost` have come. Their number is not known before.
        case remaining(from: Int64, atMost: Int64?)
    }

    package var kind: Kind
    package var resource: Resource
    package var method: Method
    /// Those of the protocol, and those of the intent with a creation; never credentials.
    package var fields: Fields
    package var content: Content
    /// Whether the content is held back until ``InterimReaction/openGate``, or for as long as the sender cares to.
    package var awaitsInterim: Bool
    /// False: the request goes to another origin.
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

extension ClientRequest.Content {
    /// Where in the representation it starts.
    var start: Int64? {
        switch self {
        case .none, .empty: nil
        case .range(let start, _), .remaining(let start, _): start
        }
    }

    /// Where it ends, of which `sent` bytes went out before the source ended or the most was reached.
    func end(sent: Int64) -> Int64? {
        switch self {
        case .none, .empty: nil
        case .range(let start, let count): start + count
        case .remaining(let start, _): start + sent
        }
    }

    /// Whether it has, or may have, more than `count` bytes.
    func exceeds(_ count: Int64) -> Bool {
        switch self {
        case .none, .empty: false
        case .range(_, let own): own > count
        case .remaining(_, let limit): limit.map { $0 > count } ?? true
        }
    }
}
