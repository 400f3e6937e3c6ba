import HTTPSemantics
import ResumableUpload

/// What is known of an upload when it is created, and saved with it.
package struct NewUpload: Sendable, Hashable {
    /// Who may use the upload; it counts against this one's limits.
    package var principal: String
    /// Method of the request that created it.
    package var method: Method
    /// The target resource, in words of the caller; nothing here reads them.
    package var target: String
    /// The request's fields that completing the upload needs. Forgotten when the upload is complete or invalid.
    package var fields: Fields
    package var dialect: Dialect
    package var limits: UploadLimits
    /// Bytes of the complete representation, if the creation announced it.
    package var length: Int64?
    /// Digests of the representation that run while its bytes arrive.
    package var digests: Set<DigestAlgorithm>
    /// Seconds since 1970; nil: does not expire.
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

    /// The part that is kept once the upload is complete or invalid: what authorizes and frames a repeat of the answer.
    var withoutFields: NewUpload {
        var remaining = self
        remaining.fields = [:]
        remaining.digests = []
        return remaining
    }
}
