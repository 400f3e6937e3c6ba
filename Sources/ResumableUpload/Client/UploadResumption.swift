/// The data with which another process can resume an upload. The URI is a secret: a client that knows it can write to
/// the upload.
package struct UploadResumption: Sendable, Hashable, Codable {
    /// The absolute URI of the upload resource.
    package var uri: String
    package var dialect: Dialect
    /// The highest offset that the server has reported, in bytes.
    package var acknowledged: Int64
    /// Bytes of the representation; `nil` while they are not known.
    package var length: Int64?
    package var limits: UploadLimits
    /// When the upload's lifetime ends, in seconds since 1970; `nil` if the server reported none.
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
