import HTTPSemantics

/// A correct server of one file. A scenario changes its reactions.
struct DownloadModel: Sendable {
    let size: Int64
    /// The current representation, 0 or 1.
    var edition = 0
    /// The entity tags of the two representations; `nil` for a representation without an entity tag.
    var tags: [String?] = ["\"first\"", "\"second\""]

    /// The values of Last-Modified of the two representations; `nil` for a representation without this field.
    var dates: [String?] = [nil, nil]

    static let target = "/file"

    /// Returns the bytes of a representation. Both representations have the same size and differ in every part.
    static func content(_ edition: Int, _ size: Int64) -> [UInt8] {
        TestContent.bytes(Int(size), from: edition * 50_000_000)
    }

    /// Returns the reaction of a correct server to a request.
    func reaction(to request: ScriptedRequest) -> Reaction {
        guard request.kind == .download else { return Reaction(ending: .answer(.init(status: 404))) }
        let content = Self.content(edition, size)
        var fields = [("Accept-Ranges", "bytes"), ("Content-Type", "application/octet-stream")]
        if let tag = tags[edition] { fields.append(("ETag", tag)) }
        if let date = dates[edition] { fields.append(("Last-Modified", date)) }
        var range: Range<Int64>?
        if request.method == "GET", let start = Self.start(of: request), isCurrent(request) {
            guard start < size else {
                return Reaction(
                    ending: .answer(.init(status: 416, fields: fields + [("Content-Range", "bytes */\(size)")])))
            }
            range = start..<(min(Self.end(of: request) ?? size, size))
        }
        var answer = Reaction.Answer(status: 200, fields: fields, content: content)
        if let range {
            answer = .init(
                status: 206,
                fields: fields + [("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)")],
                content: Array(content[Int(range.lowerBound)..<Int(range.upperBound)]))
        }
        return Reaction(ending: .answer(answer))
    }

    /// Returns whether If-Range is absent or matches the current representation.
    private func isCurrent(_ request: ScriptedRequest) -> Bool {
        guard let condition = request.single("If-Range") else { return true }
        if let date = dates[edition], condition == date { return true }
        guard let tag = tags[edition], !tag.hasPrefix("W/") else { return false }
        return condition == tag
    }

    /// Returns the first position of a single range `bytes=a-` or `bytes=a-b`.
    static func start(of request: ScriptedRequest) -> Int64? { bounds(of: request)?.0 }

    private static func end(of request: ScriptedRequest) -> Int64? { bounds(of: request)?.1.map { $0 + 1 } }

    private static func bounds(of request: ScriptedRequest) -> (Int64, Int64?)? {
        guard let text = request.single("Range"), text.hasPrefix("bytes=") else { return nil }
        let parts = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let first = Int64(parts[0]) else { return nil }
        return (first, Int64(parts[1]))
    }
}
