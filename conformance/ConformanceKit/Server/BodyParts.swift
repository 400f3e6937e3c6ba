/// The parts of a multipart/byteranges body.
struct BodyParts {
    /// The values of Content-Range.
    private(set) var ranges: [String] = []
    private(set) var contents: [[UInt8]] = []

    init(_ body: [UInt8], boundary: String) {
        let delimiter = Array("--\(boundary)".utf8)
        var remaining = body[...]
        while let start = remaining.firstRange(of: delimiter)?.upperBound {
            remaining = remaining[start...]
            if remaining.starts(with: Array("--".utf8)) { return }
            guard let head = remaining.firstRange(of: Array("\r\n\r\n".utf8)),
                let end = remaining[head.upperBound...].firstRange(of: Array("\r\n".utf8) + delimiter)
            else { return }
            let lines = String(decoding: remaining[..<head.lowerBound], as: UTF8.self).split(separator: "\r\n")
            let range = lines.first { $0.lowercased().hasPrefix("content-range:") }
            ranges.append(String(range?.dropFirst(14).drop { $0 == " " } ?? ""))
            contents.append(Array(remaining[head.upperBound..<end.lowerBound]))
            remaining = remaining[end.lowerBound...]
        }
    }
}
