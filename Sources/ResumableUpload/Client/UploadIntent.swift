import HTTPSemantics

/// The parameters of an upload before anything is sent.
package struct UploadIntent: Sendable, Hashable {
    package var dialect: Dialect
    package var style: CreationStyle
    /// The method of the request that creates the upload.
    package var method: Method
    /// Bytes of the representation; `nil` while they are not known.
    package var length: Int64?
    /// The maximum content of one request in bytes, including the creation; `nil`: no bound of the client.
    package var maximumContent: Int64?
    /// The caller's fields of the request that creates the upload: they describe the representation.
    package var fields: Fields
    /// Whether an upload resource of another origin than that of the request is accepted. Credentials are never sent to
    /// it.
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
