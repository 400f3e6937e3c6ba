import HTTPSemantics
import ResumableUpload

/// The metadata of a representation, with the values of the fields of the response. The client keeps it with the bytes.
struct DownloadRepresentation: Sendable, Hashable {
    /// A strong validator, which allows combining bytes of several responses (RFC 9110 section 13.1.5).
    enum Validator: Sendable, Hashable {
        case entityTag(EntityTag)
        /// The date as the server wrote it.
        case lastModified(String)

        /// The value of `If-Range`.
        var value: String {
            switch self {
            case .entityTag(let tag): tag.serialized
            case .lastModified(let date): date
            }
        }
    }

    /// The entity tag, weak or strong.
    var entityTag: EntityTag?
    var lastModified: String?
    /// The field `Date` of the response that contained ``lastModified``.
    var date: String?
    /// The length in bytes, with the content coding applied; `nil` while it is unknown.
    var total: Int64?
    var mediaType: String?
    var contentCoding: String?
    /// The value of `Repr-Digest` (RFC 9530).
    var digest: String?
}

extension DownloadRepresentation {
    /// Reads the head of a response. The length of a partial response is ignored, because it is the length of the part.
    init(_ head: ClientResponseHead) {
        entityTag = head.single("ETag").flatMap { EntityTag(parsing: $0) }
        lastModified = head.single("Last-Modified")
        date = head.single("Date")
        total = head.status == .partialContent ? nil : head.contentLength
        mediaType = head.single("Content-Type")
        contentCoding = head.fields["Content-Encoding"].flatMap { $0.isEmpty ? nil : $0 }
        digest = DigestField(fieldLines: head.fields.values("Repr-Digest"))?.serialized
    }

    /// The content coding of the stored bytes; `nil` if they are not coded.
    var storedCoding: String? {
        let codings = (contentCoding ?? "").split(separator: ",").filter { coding in
            !["", "identity"].contains(coding.filter { $0 != " " && $0 != "\t" }.lowercased())
        }
        return codings.isEmpty ? nil : contentCoding
    }

    /// Last-Modified must be at least this many seconds before Date; otherwise it is not used as a strong validator
    /// (RFC 9110 section 8.8.2.2).
    private static let minLastModifiedAge: Int64 = 60
    /// Determines the century of dates whose year has two digits. Any fixed date can be used, because such dates are
    /// compared only with each other.
    fileprivate static let centuryReference = HTTPDate(secondsSinceEpoch: 1_800_000_000)

    /// The strong validator. If it is `nil`, bytes of two responses must not be combined.
    ///
    /// A date does not identify coded content, because servers choose the coding for every response.
    var validator: Validator? {
        if let entityTag, !entityTag.isWeak { return .entityTag(entityTag) }
        guard contentCoding == nil, let lastModified, let date,
            let modified = HTTPDate(parsing: lastModified, relativeTo: Self.centuryReference),
            let sent = HTTPDate(parsing: date, relativeTo: Self.centuryReference),
            modified.secondsSinceEpoch + Self.minLastModifiedAge <= sent.secondsSinceEpoch
        else { return nil }
        return .lastModified(lastModified)
    }

    /// Whether `other` has the same validator; `nil` if `other` has no validator of this kind; `false` if this
    /// representation has none.
    func hasSameValidator(as other: DownloadRepresentation) -> Bool? {
        switch validator {
        case .entityTag(let tag): return other.entityTag.map { $0.strongMatches(tag) }
        case .lastModified(let text):
            if let entityTag, let theirs = other.entityTag, !entityTag.weakMatches(theirs) { return false }
            guard let theirs = other.lastModified else { return nil }
            let dates = [text, theirs].map { HTTPDate(parsing: $0, relativeTo: Self.centuryReference) }
            return dates[0] != nil && dates[0] == dates[1]
        case nil: return false
        }
    }

    /// Whether both have the same media type (parameters are ignored), or both have none.
    func isOfSameType(as other: DownloadRepresentation) -> Bool {
        let types = [mediaType, other.mediaType].map { text in
            text.map { MediaType(parsing: $0)?.essence ?? $0 }
        }
        return types[0] == types[1]
    }

    /// Whether a response to `If-Range` may omit the validator. It may omit a date, but not an entity tag (RFC 9110
    /// section 15.3.7).
    private var canOmitValidator: Bool {
        if case .lastModified = validator { true } else { false }
    }

    /// Whether the bytes of the partial response `part` continue those that are kept.
    /// - Parameter hasTotalSize: whether Content-Range states the size of the entire representation (not `*`).
    func isContinued(by part: DownloadRepresentation, hasTotalSize: Bool) -> Bool {
        guard hasSameValidator(as: part) ?? (hasTotalSize && canOmitValidator) else { return false }
        // A response to If-Range may omit the coding and the digest (RFC 9110 section 15.3.7).
        if let coding = part.contentCoding, coding != contentCoding { return false }
        guard let theirs = part.digest, let digest else { return true }
        guard let ours = DigestField(fieldLines: [digest]), let other = DigestField(fieldLines: [theirs]) else {
            return true
        }
        return ours.values.allSatisfy { value in other[value.algorithm].map { $0 == value.bytes } ?? true }
    }
}

extension DownloadRepresentation {
    /// Restores the metadata from a checkpoint.
    init(_ checkpoint: DownloadCheckpoint) {
        self.init(
            entityTag: checkpoint.entityTag.flatMap { EntityTag(parsing: $0) }, lastModified: checkpoint.lastModified,
            date: checkpoint.date, total: checkpoint.total, mediaType: checkpoint.mediaType,
            contentCoding: checkpoint.contentCoding,
            digest: checkpoint.digest)
    }
}

extension TransferResponse {
    /// `Last-Modified` in seconds since 1970, if it is a strong validator: no later change of the representation can
    /// have the same date. `nil` for all other dates.
    package var strongModificationTime: Int64? {
        var described = DownloadRepresentation(ClientResponseHead(status: status, fields: fields))
        described.entityTag = nil
        guard case .lastModified(let date) = described.validator else { return nil }
        return HTTPDate(parsing: date, relativeTo: DownloadRepresentation.centuryReference)?.secondsSinceEpoch
    }
}

extension ClientResponseHead {
    /// The value of a field that has one line; `nil` if there are none or several.
    func single(_ name: String) -> String? {
        let values = fields.values(name)
        return values.count == 1 ? values[0] : nil
    }

    /// The length of the content according to the head (RFC 9112 section 6.2).
    var contentLength: Int64? {
        if status == .noContent || status == .resetContent { return 0 }
        guard !fields.contains("Transfer-Encoding"), let text = fields.values("Content-Length").first,
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        return Int64(text)
    }

    /// The reason why the content cannot be received; `nil` if it can.
    var framingProblem: String? {
        let codings = (fields["Transfer-Encoding"] ?? "").split(separator: ",").map { coding in
            coding.filter { $0 != " " && $0 != "\t" }.lowercased()
        }
        guard codings.allSatisfy({ ["chunked", "identity", ""].contains($0) }) else {
            return "The content has a transfer coding that was not requested."
        }
        // Several lines with the same value count as one (RFC 9110 section 8.6).
        guard fields.contains("Transfer-Encoding") || Set(fields.values("Content-Length")).count <= 1 else {
            return "The response has different values of Content-Length."
        }
        // The number is too large for Int64. libcurl would then ignore it and read until the connection ends (RFC 9112
        // section 6.3). All lines have the same value.
        if let length = fields.values("Content-Length").first, !fields.contains("Transfer-Encoding"),
            Int64(length) == nil, length.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        {
            return "The Content-Length of the response is invalid."
        }
        return nil
    }
}

extension TransferResponse {
    /// A summary of the response, for messages: "200, text/html, 26 bytes, without a validator".
    var contentSummary: String {
        let head = ClientResponseHead(status: status, fields: fields)
        let described = DownloadRepresentation(head)
        let type = described.mediaType.map { MediaType(parsing: $0)?.essence ?? "an invalid media type" }
        let size = head.contentLength.map { "\($0) bytes" } ?? "\(content.count) bytes or more"
        let hasValidator = described.entityTag != nil || described.lastModified != nil
        return "\(status), \(type ?? "no media type"), \(size), \(hasValidator ? "with" : "without") a validator"
    }
}
