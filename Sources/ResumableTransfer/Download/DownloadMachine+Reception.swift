import HTTPSemantics
import ResumableUpload

extension DownloadMachine {
    /// Classifies the response to the request. It changes nothing, so it can also be called before the content is
    /// received.
    func reception(of head: ClientResponseHead) -> DownloadReception {
        if let problem = head.framingProblem { return .violation(problem) }
        switch head.status {
        case .partialContent: return receptionOfPart(head)
        case .rangeNotSatisfiable: return receptionOfUnsatisfiableRange(head)
        case .movedPermanently, .found, .seeOther, .temporaryRedirect, .permanentRedirect: return .redirection
        case _ where head.status.isSuccessful: return receptionOfEntireContent(head)
        default: return .refusal
        }
    }

    /// Classifies 200, and 203 from a proxy that has transformed the content (RFC 9110 section 15.3.4). Other
    /// successful responses have no content, or their content is not the requested representation.
    ///
    /// If bytes are kept, only another state of the same resource may replace them. A response without any validator,
    /// or with another media type, is more likely a page of a captive portal or of a proxy.
    private func receptionOfEntireContent(_ head: ClientResponseHead) -> DownloadReception {
        guard head.status == .ok || head.status.rawValue == 203 else { return .unexpected }
        // Content-Range has no meaning with these statuses (RFC 9110 section 14.4), but some servers send a part with
        // status 200.
        let part = head.single("Content-Range").flatMap { ContentRange(parsing: $0)?.range }
        if start > 0, let part, part.lowerBound > 0 { return .inconsistent }
        var new = DownloadRepresentation(head)
        guard hasBytes, let known = representation else { return .replace(new) }
        if known.hasSameValidator(as: new) == true {
            // The same representation has the same length: a response with another length was cut, or comes from an
            // intermediary.
            guard let total = known.total else { return .replace(new) }
            guard new.total ?? total == total else { return .unexpected }
            new.total = total
            return .replace(new)
        }
        if earlier?.representation.hasSameValidator(as: new) == true { return .earlier }
        guard known.isOfSameType(as: new), new.entityTag != nil || new.lastModified != nil else {
            return .unexpected
        }
        return .replace(new)
    }

    /// Classifies 206 (RFC 9110 section 15.3.7).
    private func receptionOfPart(_ head: ClientResponseHead) -> DownloadReception {
        guard start > 0, var known = representation else {
            return .violation("The server sent a part that was not requested.")
        }
        // A response with several parts has no Content-Range, and a Content-Range with another unit cannot be parsed.
        guard let value = head.single("Content-Range"), let field = ContentRange(parsing: value),
            let range = field.range, range.lowerBound == start
        else { return .inconsistent }
        if let total = known.total, let size = field.size, total != size { return .inconsistent }
        if let total = known.total, range.upperBound > total { return .inconsistent }
        if let length = head.contentLength, length != Int64(range.count) { return .inconsistent }
        let part = DownloadRepresentation(head)
        guard known.isContinued(by: part, hasTotalSize: field.size != nil) else { return .inconsistent }
        known.total = known.total ?? field.size
        known.digest = known.digest ?? part.digest
        return .resume(known, end: range.upperBound)
    }

    /// Classifies 416 (RFC 9110 section 15.5.17).
    private func receptionOfUnsatisfiableRange(_ head: ClientResponseHead) -> DownloadReception {
        guard start > 0, var known = representation else { return .refusal }
        guard !isCompletenessUncertain, let value = head.single("Content-Range"),
            let field = ContentRange(parsing: value),
            field.range == nil, let size = field.size, size == start, known.total == nil || known.total == size
        else { return .inconsistent }
        known.total = size
        return switch known.hasSameValidator(as: DownloadRepresentation(head)) {
        case true?: .complete(known)
        case false?: .inconsistent
        case nil: .doubtful(known)
        }
    }
}

/// The class of a response to a request of a download.
enum DownloadReception: Sendable, Hashable {
    /// The content continues the bytes that are kept, up to the offset `end`.
    case resume(DownloadRepresentation, end: Int64)
    /// The content is the entire representation. It replaces the bytes that are kept when it is complete.
    case replace(DownloadRepresentation)
    /// All bytes were received before.
    case complete(DownloadRepresentation)
    /// A 416 with the expected size, but without a validator. The last byte is requested again, because a 206 has
    /// a validator.
    case doubtful(DownloadRepresentation)
    /// The response does not match the bytes that are kept.
    case inconsistent
    /// The content is an earlier representation whose bytes are also kept (``DownloadMachine/earlier``).
    case earlier
    /// The response is neither a part of the requested representation nor a new state of it; another attempt may
    /// succeed.
    case unexpected
    case redirection
    case refusal
    /// The response is invalid.
    case violation(String)
}
