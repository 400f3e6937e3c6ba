import HTTPSemantics
import ResumableUpload

/// The properties of an upload that are known and saved when it is created.
package struct NewUpload: Sendable, Hashable {
    /// The principal that may use the upload, and against whose limits the upload counts.
    package var principal: String
    /// The method of the request that created the upload.
    package var method: Method
    /// The target resource, as a text that only the caller interprets.
    package var target: String
    /// The fields of the request that are needed to complete the upload. They are removed when it is complete or
    /// invalid.
    package var fields: Fields
    package var dialect: Dialect
    package var limits: UploadLimits
    /// The length of the complete representation in bytes, if the creation announced it.
    package var length: Int64?
    /// The digests of the representation that are calculated while its bytes arrive.
    package var digests: Set<DigestAlgorithm>
    /// The time of expiry, in seconds of ``UploadStore/time``; nil if the upload does not expire.
    package var expiresAt: Int64?

    package init(
        principal: String, method: Method, target: String, fields: Fields = [:], dialect: Dialect = .rfc,
        limits: UploadLimits = UploadLimits(), length: Int64? = nil, digests: Set<DigestAlgorithm> = [],
        expiresAt: Int64? = nil
    ) {
        self.principal = principal
        self.method = method
        self.target = target
        self.fields = fields
        self.dialect = dialect
        self.limits = limits
        self.length = length
        self.digests = digests
        self.expiresAt = expiresAt
    }

    /// The properties that are kept once the upload is complete or invalid. They are needed to authorize later requests
    /// and to send the final response again.
    var withoutFields: NewUpload {
        var remaining = self
        remaining.fields = [:]
        remaining.digests = []
        return remaining
    }
}
