import HTTPSemantics

extension DownloadMachine {
    /// What the response to the request is. It changes nothing: whoever receives the content asks before it comes.
    func reception(of head: DownloadResponseHead) -> DownloadReception {
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
    /// While bytes are at hand, a response has to be another state of the same resource to replace them. One without any
    /// validator, or of another media type, is rather a page of a captive portal or of a proxy.
    private func receptionOfWhole(_ head: DownloadResponseHead) -> DownloadReception {
        guard head.status == .ok || head.status.rawValue == 203 else { return .unexpected }
        // Content-Range means nothing here (RFC 9110 section 14.4), but some servers send a part like that all the same.
        let part = head.single("Content-Range").flatMap { ContentRange(parsing: $0)?.range }
        if let request, request.start > 0, let part, part.lowerBound > 0 { return .unfit }
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
    private func receptionOfPart(_ head: DownloadResponseHead) -> DownloadReception {
        guard let start = request?.start, start > 0, var known = representation else {
            return .violation("The server sent a part that nobody asked for.")
        }
        // Several parts have no Content-Range, and one of another unit has one that is not understood.
        guard let value = head.single("Content-Range"), let told = ContentRange(parsing: value),
            let range = told.range, range.lowerBound == start
        else { return .unfit }
        if let total = known.total, let size = told.size, total != size { return .unfit }
        if let total = known.total, range.upperBound > total { return .unfit }
        if let length = head.contentLength, length != Int64(range.count) { return .unfit }
        let part = DownloadRepresentation(head)
        guard known.isContinued(by: part, isSizeTold: told.size != nil) else { return .unfit }
        known.total = known.total ?? told.size
        known.digest = known.digest ?? part.digest
        return .resume(known, end: range.upperBound)
    }

    /// 416 (RFC 9110 section 15.5.17).
    private func receptionOfNothing(_ head: DownloadResponseHead) -> DownloadReception {
        guard let start = request?.start, start > 0, var known = representation else { return .refusal }
        guard !isDoubtful, let value = head.single("Content-Range"), let told = ContentRange(parsing: value),
            told.range == nil, let size = told.size, size == start, known.total == nil || known.total == size
        else { return .unfit }
        known.total = size
        return switch known.hasSameValidator(as: DownloadRepresentation(head)) {
        case true?: .complete(known)
        case false?: .unfit
        case nil: .doubtful(known)
        }
    }
}
