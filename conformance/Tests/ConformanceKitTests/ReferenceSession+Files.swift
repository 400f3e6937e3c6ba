import HTTPSemantics

@testable import ConformanceKit

extension ReferenceSession {
    /// Answers a request for a finished file, with ranges and conditions.
    func file(_ request: ReferenceRequest) -> ReferenceReply {
        guard let content = server.state.withLock({ $0.files[request.path] }) else {
            return ReferenceReply(status: 404, content: Array("no such file".utf8))
        }
        let now = HTTPDate(secondsSinceEpoch: 1_000_000_000)
        let tag = SecureHash.sha256(content).prefix(8).map { String($0, radix: 16) }.joined()
        let validators = Validators(entityTag: EntityTag(opaque: tag), date: now)
        let fields = [("ETag", "\"\(tag)\""), ("Accept-Ranges", "bytes"), ("X-Content-Type-Options", "nosniff")]
        let conditions = Preconditions(fields: request.fields, now: now)
        switch conditions.evaluate(method: Method(rawValue: request.method), current: validators) {
        case .proceed: break
        case .notModified: return ReferenceReply(status: 304, fields: fields)
        case .failed: return ReferenceReply(status: 412)
        }
        let type = [("Content-Type", "application/octet-stream")]
        let complete = ReferenceReply(status: 200, fields: fields + type, content: content)
        let applies = conditions.rangeApplies(current: validators) || has(.ignoresIfRange)
        guard request.method == "GET" || has(.rangesHead), applies,
            let set = ByteRangeSet(fieldLines: request.fields.values("Range"))
        else { return complete }
        let size = Int64(content.count)
        switch set.resolve(size: size) {
        case .complete: return complete
        case .unsatisfiable:
            return ReferenceReply(status: 416, fields: [("Content-Range", "bytes */\(size)")])
        case .satisfiable(let ranges) where ranges.count == 1:
            let range = ranges[0]
            let first = Int(range.lowerBound) + (has(.shiftsRanges) ? 1 : 0)
            let field = ("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)")
            return ReferenceReply(
                status: 206, fields: fields + type + [field],
                content: Array(content[min(first, content.count - 1)..<Int(range.upperBound)]))
        case .satisfiable(let ranges):
            guard let parts = MultipartByteRanges(boundary: "reference-\(tag)", ranges: ranges, size: size) else {
                return complete
            }
            let body = parts.segments.flatMap { segment -> [UInt8] in
                switch segment {
                case .bytes(let bytes): bytes
                case .range(let range): Array(content[Int(range.lowerBound)..<Int(range.upperBound)])
                }
            }
            return ReferenceReply(status: 206, fields: fields + [("Content-Type", parts.contentType)], content: body)
        }
    }
}
