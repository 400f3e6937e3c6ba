import HTTPSemantics

/// What a client wants of an upload, before anything was sent.
package struct UploadIntent: Sendable, Hashable {
    package var dialect: Dialect
    package var style: CreationStyle
    /// Of the request that creates the upload.
    package var method: Method
    /// Bytes of the representation; `nil` while they are not known.
    package var length: Int64?
    /// Bytes that the content of one request has at most, that of the creation included; `nil`: no bound of our own.
    package var maximumContent: Int64?
    /// The caller's fields of the request that creates the upload: they describe the representation.
    package var fields: Fields
    /// Whether an upload resource of another origin than that of the request is used. It never gets credentials.
    package var allowsOtherOrigin: Bool

    package init(
        dialect: Dialect = .interop8, style: CreationStyle = .optimistic, method: Method = .post, length: Int64? = nil,
        maximumContent: Int64? = nil, fields: Fields = Fields(), allowsOtherOrigin: Bool = false
    ) {
        self.dialect = dialect
        self.style = style
        self.method = method
        self.length = length
        self.maximumContent = maximumContent
        self.fields = fields
        self.allowsOtherOrigin = allowsOtherOrigin
    }
}
