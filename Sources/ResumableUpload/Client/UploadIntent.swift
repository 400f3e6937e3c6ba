import HTTPSemantics

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
    package var allowsOtherOrigin: Bool

    package init(
        dialect: Dialect = .newest, style: CreationStyle = .optimistic, method: Method = .post, length: Int64? = nil,
        maxRequestContentLength: Int64? = nil, fields: Fields = Fields(), allowsOtherOrigin: Bool = false
    ) {
        self.dialect = dialect
        self.style = style
        self.method = method
        self.length = length
        self.maxRequestContentLength = maxRequestContentLength
        self.fields = fields
        self.allowsOtherOrigin = allowsOtherOrigin
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
