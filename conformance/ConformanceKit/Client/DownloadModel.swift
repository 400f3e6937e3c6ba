import HTTPSemantics

/// A server of one file that does everything rightly; a scenario changes what it has to.
struct DownloadModel: Sendable {
    let size: Int64
    /// Which representation there is, 0 or 1.
    var edition = 0
    /// Entity tags of the two representations; nil for none.
    var tags: [String?] = ["\"first\"", "\"second\""]

    /// When they were changed last; nil for no such field.
    var dates: [String?] = [nil, nil]

    static let target = "/file"

    /// Bytes of a representation. Both have the same size, and differ everywhere.
    static func content(_ edition: Int, _ size: Int64) -> [UInt8] {
        TestContent.bytes(Int(size), from: edition * 50_000_000)
    }

    /// What a good server does.
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

    /// Whether what the client has is what there is, as far as it says.
    private func isCurrent(_ request: ScriptedRequest) -> Bool {
        guard let condition = request.single("If-Range") else { return true }
        if let date = dates[edition], condition == date { return true }
        guard let tag = tags[edition], !tag.hasPrefix("W/") else { return false }
        return condition == tag
    }

    /// The first byte of a single range `bytes=a-` or `bytes=a-b`.
    static func start(of request: ScriptedRequest) -> Int64? { bounds(of: request)?.0 }

    private static func end(of request: ScriptedRequest) -> Int64? { bounds(of: request)?.1.map { $0 + 1 } }

    private static func bounds(of request: ScriptedRequest) -> (Int64, Int64?)? {
        guard let text = request.single("Range"), text.hasPrefix("bytes=") else { return nil }
        let parts = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let first = Int64(parts[0]) else { return nil }
        return (first, Int64(parts[1]))
    }
}
