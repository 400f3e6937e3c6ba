import HTTPSemantics

/// How an upload ended: with the answer of the resource that it was meant for, whatever its status says.
public struct UploadResult: Sendable, Hashable {
    /// Of the final response, or, where that was lost, of the last one that came.
    public var status: Status?
    /// The fields of the same response.
    public var fields: Fields
    /// The content of the final response: up to 1 MiB of it, or 64 KiB where its status is none of success.
    public var content: [UInt8]
    /// The resource that the answer names in `Location`, else in `Content-Location`, absolute; `nil` if it names none.
    public var location: String?
    /// Whether the server has everything, but its answer never came.
    public var isResponseLost: Bool
    /// The upload resource, a secret; `nil` if the server made none.
    public var uploadURI: String?
    /// Bytes of content that were handed to the kernel, over all requests of this run.
    public var sent: Int64
    /// Bytes that the server has.
    public var acknowledged: Int64
    /// Requests of this run, of any method.
    public var requests: Int

    /// A result with these values, for tests of callers.
    public init(
        status: Status?, fields: Fields, content: [UInt8], location: String?, isResponseLost: Bool, uploadURI: String?,
        sent: Int64, acknowledged: Int64, requests: Int
    ) {
        self.status = status
        self.fields = fields
        self.content = content
        self.location = location
        self.isResponseLost = isResponseLost
        self.uploadURI = uploadURI
        self.sent = sent
        self.acknowledged = acknowledged
        self.requests = requests
    }
}
