import HTTPSemantics

extension ClientUpload {
    var bound: ContentBound {
        ContentBound(own: intent.maxRequestContentLength, learned: learnedMax, limits: limits)
    }

    // MARK: Requests

    func creation() -> ClientRequest {
        var fields = intent.fields
        guard intent.style != .plain else { return creation(fields, completeContent, shouldAwaitInterim: false) }
        for field in versionFields { fields.append(field.name, field.value) }
        let isTooMuch = bound.maxCount.map { completeContent.exceeds($0) } ?? false
        let isComplete = intent.length == 0 || (intent.style == .optimistic && !isTooMuch)
        append(completeness: isComplete, to: &fields)
        if let length = intent.length, intent.dialect.isUploadLengthRead {
            fields.append(UploadFieldName.length, "\(length)")
        }
        return creation(
            fields, isComplete ? completeContent : .empty, shouldAwaitInterim: isComplete && intent.length != 0)
    }

    private func creation(
        _ fields: Fields, _ content: RequestContent, shouldAwaitInterim: Bool
    ) -> ClientRequest {
        ClientRequest(
            kind: .create, resource: target, method: intent.method, fields: fields, content: content,
            shouldAwaitInterim: shouldAwaitInterim, hasCredentials: !isTargetForeign)
    }

    /// An append at `acknowledged` with all remaining content, or as much as the bound allows.
    func append() -> ClientRequest {
        guard let length = intent.length else {
            let limit = bound.maxCount
            return append(.remaining(from: acknowledged, atMost: limit), isLast: limit == nil)
        }
        let count = bound.share(of: length - acknowledged)
        return append(
            count == 0 ? .empty : .range(from: acknowledged, count: count), isLast: acknowledged + count == length)
    }

    /// The completing append without content, which can be repeated.
    func completion() -> ClientRequest { append(.empty, isLast: true) }

    private func append(_ content: RequestContent, isLast: Bool) -> ClientRequest {
        var fields = versionFields
        if intent.dialect.isPartialUploadMediaTypeRequired { fields.append("Content-Type", partialUploadMediaType) }
        fields.append(UploadFieldName.offset, "\(acknowledged)")
        append(completeness: isLast, to: &fields)
        if let length = intent.length, intent.dialect.isLengthSentOnAppend {
            fields.append(UploadFieldName.length, "\(length)")
        }
        return uploadRequest(.append, .patch, fields, content)
    }

    func retrieval() -> ClientRequest { uploadRequest(.retrieve, .head, versionFields, .none) }

    func cancellation(of uri: String) -> ClientRequest {
        var request = uploadRequest(.cancel, .delete, versionFields, .none)
        request.resource = .upload(uri)
        return request
    }

    func discovery() -> ClientRequest {
        ClientRequest(
            kind: .discover, resource: target, method: .options, fields: versionFields, content: .none,
            hasCredentials: !isTargetForeign)
    }

    private func uploadRequest(
        _ kind: ClientRequest.Kind, _ method: Method, _ fields: Fields, _ content: RequestContent
    ) -> ClientRequest {
        ClientRequest(
            kind: kind, resource: .upload(temporaryURI ?? resumption?.uri ?? ""), method: method, fields: fields,
            content: content, hasCredentials: !isTargetForeign && !isUploadForeign)
    }

    // MARK: Parts of requests

    private var completeContent: RequestContent {
        switch intent.length {
        case 0: .empty
        case let length?: .range(from: 0, count: length)
        case nil: .remaining(from: 0, atMost: nil)
        }
    }

    private var versionFields: Fields {
        var fields = Fields()
        if let version = intent.dialect.interopVersion { fields.append(UploadFieldName.interopVersion, "\(version)") }
        return fields
    }

    private func append(completeness isComplete: Bool, to fields: inout Fields) {
        let field = intent.dialect.completenessField(isComplete)
        fields.append(field.name, field.value)
    }
}

/// The maximum content of one request in bytes, and its minimum if more content follows (draft section 4.1.4).
struct ContentBound: Sendable, Hashable {
    /// The maximum number of bytes; `nil`: no bound.
    let maxCount: Int64?
    let minCount: Int64

    /// - Parameters:
    ///   - own: the caller's bound.
    ///   - learned: the bound derived from rejected requests.
    init(own: Int64?, learned: Int64?, limits: UploadLimits) {
        let server = [limits.maxAppendSize, learned].compactMap { $0 }.min()
        let minCount = min(limits.minAppendSize ?? 0, server ?? .max)
        // The server's minimum is required, so it overrides the caller's bound.
        let requested = own.map { max($0, minCount) }
        self.minCount = minCount
        maxCount = [server, requested].compactMap { $0 }.min().map { max(1, $0) }
    }

    /// The number of `remaining` bytes that the next request sends: the maximum, or all of them if they are fewer.
    func share(of remaining: Int64) -> Int64 {
        maxCount.map { min($0, remaining) } ?? remaining
    }

    /// The new bound after the server rejected content of `count` bytes as too large: half of it, but not less than the
    /// minimum. `nil` if the bound cannot be less than `count`.
    func below(_ count: Int64) -> Int64? {
        let half = max(count / 2, minCount)
        return half >= 1 && half < count ? half : nil
    }
}

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
    package var shouldAwaitInterim: Bool
    /// Whether credentials are sent; false for a request to another origin.
    package var hasCredentials: Bool

    package init(
        kind: Kind, resource: Resource, method: Method, fields: Fields, content: RequestContent,
        shouldAwaitInterim: Bool = false,
        hasCredentials: Bool = true
    ) {
        self.kind = kind
        self.resource = resource
        self.method = method
        self.fields = fields
        self.content = content
        self.shouldAwaitInterim = shouldAwaitInterim
        self.hasCredentials = hasCredentials
    }
}

extension ClientRequest {
    /// The maximum size in bytes of content that is sent without waiting for the upload resource. A server can store
    /// content of this size at once, if it arrives together with the head.
    package static let maxSizeAtOnce: Int64 = 256 << 10

    /// Whether the content does not wait until the server has announced the upload resource. If the request is
    /// interrupted before that, all of the content is sent again, and the target may process it twice. So the content
    /// has to be short, and a repetition must have the same result: the request is a PUT (RFC 9110 section 9.2.2)
    /// without a precondition (RFC 9110 section 13.1), which would be false after the first success.
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

/// The parameters of an upload before anything is sent.
package struct UploadIntent: Sendable, Hashable {
    package var dialect: Dialect
    package var style: CreationStyle
    /// The method of the request that creates the upload.
    package var method: Method
    /// The length of the representation in bytes; `nil` while it is not known.
    package var length: Int64?
    /// The maximum number of content bytes in one request; it also applies to the request that creates the upload.
    /// `nil`: the client sets no maximum.
    package var maxRequestContentLength: Int64?
    /// The caller's fields of the request that creates the upload: they describe the representation.
    package var fields: Fields
    /// Whether an upload resource of another origin than that of the request is accepted. Credentials are never sent to
    /// it.
    package var isOtherOriginAllowed: Bool

    package init(
        dialect: Dialect = .newest, style: CreationStyle = .optimistic, method: Method = .post, length: Int64? = nil,
        maxRequestContentLength: Int64? = nil, fields: Fields = Fields(), isOtherOriginAllowed: Bool = false
    ) {
        self.dialect = dialect
        self.style = style
        self.method = method
        self.length = length
        self.maxRequestContentLength = maxRequestContentLength
        self.fields = fields
        self.isOtherOriginAllowed = isOtherOriginAllowed
    }
}

/// How an upload starts (draft section 4.2).
public enum CreationStyle: Sendable, Hashable, CaseIterable {
    /// The request that creates the upload carries the complete content. The client sends the head immediately,
    /// and the content when the server has announced the upload resource (104), or after a timeout. Content of at most
    /// 256 KiB of a PUT without preconditions does not wait: if necessary it is sent again.
    case optimistic
    /// An empty request creates the upload; the content follows in appends.
    case careful
    /// Optimistic up to 4 MiB (4,194,304 bytes) and for content of unknown length. For more bytes, the limits
    /// of the target are requested first (draft section 4.1.4): careful if it announces resumable uploads of this
    /// version, otherwise optimistic. That costs two round trips, and makes interruptions cheap even behind proxies
    /// that do not forward 104.
    case automatic
    /// One ordinary request, which cannot be resumed.
    case plain

    /// The maximum size in bytes for which ``automatic`` does not request the limits first.
    package static let maxSizeWithoutDiscovery: Int64 = 4 << 20
}

/// The data with which another process can resume an upload. The URI is a secret: every client that has it can write
/// to the upload.
package struct UploadResumption: Sendable, Hashable, Codable {
    /// The absolute URI of the upload resource.
    package var uri: String
    package var dialect: Dialect
    /// The highest offset that the server has reported, in bytes.
    package var acknowledged: Int64
    /// The length of the representation in bytes; `nil` while it is not known.
    package var length: Int64?
    package var limits: UploadLimits
    /// The time at which the upload's lifetime ends, in seconds since 1970; `nil` if the server reported no lifetime.
    package var expires: Int64?

    package init(
        uri: String, dialect: Dialect, acknowledged: Int64, length: Int64?, limits: UploadLimits, expires: Int64?
    ) {
        self.uri = uri
        self.dialect = dialect
        self.acknowledged = acknowledged
        self.length = length
        self.limits = limits
        self.expires = expires
    }
}
