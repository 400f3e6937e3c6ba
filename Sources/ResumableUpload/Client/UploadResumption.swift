/// What another process needs to know of an upload to go on with it. The URI is a secret: who knows it can write.
package struct UploadResumption: Sendable, Hashable, Codable {
    /// Of the upload resource, absolute.
    package var uri: String
    package var dialect: Dialect
    /// The highest offset that the server ever told, in bytes.
    package var acknowledged: Int64
    /// Bytes of the representation; `nil` while they are not known.
    package var length: Int64?
    package var limits: UploadLimits
    /// When the upload's lifetime ends, in seconds since 1970; `nil` where the server told none.
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
