import HTTPSemantics
import ResumableUpload

extension DownloadMachine {
    /// Classifies the response to the request. It changes nothing, so that the receiver of the content can call it first.
    func reception(of head: ClientResponseHead) -> DownloadReception {
        if let problem = head.framingProblem { return .violation(problem) }
        switch head.status {
        case .partialContent: return receptionOfPart(head)
        case .rangeNotSatisfiable: return receptionOfNothing(head)
        case .movedPermanently, .found, .seeOther, .temporaryRedirect, .permanentRedirect: return .redirection
        case _ where head.status.isSuccessful: return receptionOfWhole(head)
        default: return .refusal
        }
    }

    /// 200, and 203 of a proxy that has transformed the content (RFC 9110 section 15.3.4). Other statuses of success have
    /// no content, or one about something else.
    ///
    /// While bytes are kept, a response has to be another state of the same resource to replace them. One without any
    /// validator, or of another media type, is rather a page of a captive portal or of a proxy.
    private func receptionOfWhole(_ head: ClientResponseHead) -> DownloadReception {
        guard head.status == .ok || head.status.rawValue == 203 else { return .unexpected }
        // Content-Range means nothing here (RFC 9110 section 14.4), but some servers send a part like that all the same.
        let part = head.single("Content-Range").flatMap { ContentRange(parsing: $0)?.range }
        if start > 0, let part, part.lowerBound > 0 { return .unfit }
        var new = DownloadRepresentation(head)
        guard hasBytes, let known = representation else { return .replace(new) }
        if known.hasSameValidator(as: new) == true {
            // The same representation has the same length: an answer with another one was cut, or comes from something between.
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

    /// 206 (RFC 9110 section 15.3.7).
    private func receptionOfPart(_ head: ClientResponseHead) -> DownloadReception {
        guard start > 0, var known = representation else {
            return .violation("The server sent a part that was not requested.")
        }
        // Several parts have no Content-Range, and one of another unit has one that is not understood.
        guard let value = head.single("Content-Range"), let field = ContentRange(parsing: value),
            let range = field.range, range.lowerBound == start
        else { return .unfit }
        if let total = known.total, let size = field.size, total != size { return .unfit }
        if let total = known.total, range.upperBound > total { return .unfit }
        if let length = head.contentLength, length != Int64(range.count) { return .unfit }
        let part = DownloadRepresentation(head)
        guard known.isContinued(by: part, isSizeKnown: field.size != nil) else { return .unfit }
        known.total = known.total ?? field.size
        known.digest = known.digest ?? part.digest
        return .resume(known, end: range.upperBound)
    }

    /// 416 (RFC 9110 section 15.5.17).
    private func receptionOfNothing(_ head: ClientResponseHead) -> DownloadReception {
        guard start > 0, var known = representation else { return .refusal }
        guard !isDoubtful, let value = head.single("Content-Range"), let field = ContentRange(parsing: value),
            field.range == nil, let size = field.size, size == start, known.total == nil || known.total == size
        else { return .unfit }
        known.total = size
        return switch known.hasSameValidator(as: DownloadRepresentation(head)) {
        case true?: .complete(known)
        case false?: .unfit
        case nil: .doubtful(known)
        }
    }
}

/// The class of a response to a request of a download.
enum DownloadReception: Sendable, Hashable {
    /// Its content continues the bytes that are kept, up to the offset `end`.
    case resume(DownloadRepresentation, end: Int64)
    /// Its content is everything from the beginning. It replaces the bytes that are kept once it is complete.
    case replace(DownloadRepresentation)
    /// All bytes were received before.
    case complete(DownloadRepresentation)
    /// The size is right, but the response has no validator; a part of the representation would have one.
    case doubtful(DownloadRepresentation)
    /// It does not fit the bytes that are kept.
    case unfit
    /// It is of the representation before, of which bytes are kept too.
    case earlier
    /// It is neither a part of the requested representation nor a new state of it; another attempt may bring one.
    case unexpected
    case redirection
    case refusal
    /// It cannot be understood.
    case violation(String)
}
