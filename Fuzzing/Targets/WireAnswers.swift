import HTTPSemantics

/// The responses of one connection, parsed as HTTP/1.1.
struct WireAnswers {
    private(set) var statuses: [Int] = []

    /// - Parameter mayOmitContent: whether one of the requests could have been a HEAD.
    init(_ bytes: [UInt8], mayOmitContent: Bool) throws(Violation) {
        guard let statuses = Self.statuses(of: bytes[...], mayOmitContent, depth: 0) else {
            throw Violation(
                "the response is not HTTP/1.1: \(String(decoding: bytes.prefix(4096), as: UTF8.self).debugDescription)")
        }
        self.statuses = statuses
    }

    private static func statuses(of bytes: ArraySlice<UInt8>, _ mayOmitContent: Bool, depth: Int) -> [Int]? {
        guard !bytes.isEmpty else { return [] }
        guard depth < 4096, let (status, fields, remaining) = head(bytes) else { return nil }
        func following(_ remaining: ArraySlice<UInt8>) -> [Int]? {
            statuses(of: remaining, mayOmitContent, depth: depth + 1).map { [status] + $0 }
        }
        if status < 200 || status == 204 || status == 304 { return following(remaining) }
        // A response to HEAD has no content. If the request could be a HEAD, both interpretations are accepted.
        if mayOmitContent, let found = following(remaining) { return found }
        // Every refusal is a problem document of the server, not a page of libmicrohttpd.
        if fields["Content-Type"]?.hasPrefix("text/html") == true, status >= 400 { return nil }
        if fields.values("Transfer-Encoding").last?.lowercased() == "chunked" {
            return afterChunks(remaining).flatMap(following)
        }
        if let text = fields["Content-Length"] {
            guard fields.values("Content-Length").count == 1, let length = Int(text),
                (0...remaining.count).contains(length)
            else { return nil }
            return following(remaining.dropFirst(length))
        }
        return fields["Connection"]?.lowercased() == "close" ? [status] : nil
    }

    private static func head(_ bytes: ArraySlice<UInt8>) -> (status: Int, fields: Fields, remaining: ArraySlice<UInt8>)?
    {
        var remaining = bytes
        guard let first = line(&remaining) else { return nil }
        let start = Array(first.utf8)
        guard start.count >= 13, ProtocolVersion(parsing: String(first.prefix(8)))?.major == 1, start[8] == 0x20,
            start[12] == 0x20, let status = Int(first.dropFirst(9).prefix(3)), (100..<600).contains(status)
        else { return nil }
        var fields = Fields()
        while let text = line(&remaining) {
            if text.isEmpty { return fields.firstInvalid == nil ? (status, fields, remaining) : nil }
            guard let colon = text.firstIndex(of: ":") else { return nil }
            fields.append(String(text[..<colon]), String(text[text.index(after: colon)...]))
        }
        return nil
    }

    private static func afterChunks(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        var remaining = bytes
        while let text = line(&remaining), let size = Int(text, radix: 16), size >= 0 {
            if size == 0 {
                while let trailer = line(&remaining) { if trailer.isEmpty { return remaining } }
                return nil
            }
            guard size <= remaining.count else { return nil }
            remaining = remaining.dropFirst(size)
            guard line(&remaining)?.isEmpty == true else { return nil }
        }
        return nil
    }

    /// Returns the next line, which must end with CR LF; `nil` if it does not.
    private static func line(_ remaining: inout ArraySlice<UInt8>) -> String? {
        guard let end = remaining.firstIndex(of: 0x0A), end > remaining.startIndex, remaining[end - 1] == 0x0D else {
            return nil
        }
        let text = String(decoding: remaining[..<(end - 1)], as: UTF8.self)
        remaining = remaining[(end + 1)...]
        return text.utf8.contains(0x0D) ? nil : text
    }
}
