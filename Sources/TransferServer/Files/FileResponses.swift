import HTTPSemantics
import SystemCalls
import UploadStorage

/// Responses to `GET` and `HEAD` for a published file, with conditions, ranges and digests (RFC 9110 sections 13 and
/// 14, RFC 9530).
struct FileResponses {
    private let digests: FileDigests
    private let isAwaited: () -> Bool

    /// - Parameter isAwaited: returns whether the client still waits for the response.
    init(_ digests: FileDigests, isAwaited: @escaping () -> Bool) {
        self.digests = digests
        self.isAwaited = isAwaited
    }

    func response(_ file: PublishedFile, fields: Fields, to request: TargetRequest) -> Response {
        let now = HTTPDate(secondsSinceEpoch: SystemClock.realtimeSeconds())
        let attributes = file.attributes
        // The modification time of a file can be in the future, but Last-Modified must not be.
        let modified = min(HTTPDate(secondsSinceEpoch: attributes.modifiedSeconds), now)
        let validators = Validators(entityTag: attributes.entityTag, lastModified: modified, date: now)
        var common = Fields()
        common.reserveCapacity(16)
        common.append("ETag", attributes.entityTag.serialized)
        common.append("Last-Modified", modified.serialized)
        common.append("Accept-Ranges", "bytes")
        for field in fields { common.append(field.name, field.value) }
        let preconditions = Preconditions(fields: request.fields, now: now)
        switch preconditions.evaluate(method: request.method, current: validators) {
        case .failed: return Response(ProblemDetails.preconditionFailed)
        case .notModified:
            common.remove("Content-Type")
            // Content-Length must be that of a 200 response (RFC 9110 section 8.6).
            return Response(status: 304, fields: common, content: .file(file))
        case .proceed: break
        }
        if let algorithm = DigestPreferences(fieldLines: request.fields.values("Want-Repr-Digest"))?.preferred,
            let value = digests.value(of: file, algorithm, while: isAwaited)
        {
            common.append("Repr-Digest", DigestField(values: [(algorithm, value)]).serialized)
        }
        let size = attributes.size
        let complete = Response(status: 200, fields: common, content: .file(file))
        guard request.method == .get, request.fields.contains("Range"), preconditions.rangeApplies(current: validators),
            let ranges = ByteRangeSet(fieldLines: request.fields.values("Range"))
        else { return complete }
        switch ranges.resolve(size: size) {
        case .complete: return complete
        case .unsatisfiable: return unsatisfiable(attributes)
        case .satisfiable(let ranges):
            return partial(file, ranges, common) ?? complete
        }
    }

    private func unsatisfiable(_ attributes: PublishedFile.Attributes) -> Response {
        let size = attributes.size
        let problem = ProblemDetails(
            status: 416, detail: "The representation has \(size) bytes.", code: "range-not-satisfiable")
        return Response(
            problem,
            fields: [
                "Content-Range": ContentRange(unsatisfiedSize: size).serialized,
                "ETag": attributes.entityTag.serialized,
            ])
    }

    private func partial(_ file: PublishedFile, _ ranges: [Range<Int64>], _ common: Fields) -> Response? {
        let size = file.attributes.size
        var fields = common
        if ranges.count == 1, let range = ranges.first {
            guard let contentRange = ContentRange(range: range, size: size) else { return nil }
            fields.append("Content-Range", contentRange.serialized)
            return Response(status: 206, fields: fields, content: .stream(FileContent(file, [.range(range)])))
        }
        // The content is not searched for the boundary: a file practically never contains the same 128 random bits.
        let boundary = RequestID().description + RequestID().description
        guard
            let parts = MultipartByteRanges(
                boundary: boundary, ranges: ranges, size: size, contentType: common["Content-Type"])
        else { return nil }
        fields.set("Content-Type", parts.contentType)
        return Response(status: 206, fields: fields, content: .stream(FileContent(file, parts.segments)))
    }
}
