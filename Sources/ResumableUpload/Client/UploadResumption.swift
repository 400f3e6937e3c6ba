/// What another process needs to know of an upload to go on with it. The URI is a secret: who knows it can write.
public struct UploadResumption: Sendable, Hashable, Codable {
    /// Of the upload resource, absolute.
    public var uri: String
    public var dialect: Dialect
    /// The highest offset that the server ever told, in bytes.
    public var acknowledged: Int64
    /// Bytes of the representation; `nil` while they are not known.
    public var length: Int64?
    public var limits: UploadLimits
    /// When the upload's lifetime ends, in seconds since 1970; `nil` where the server told none.
    public var expires: Int64?

    public init(
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
