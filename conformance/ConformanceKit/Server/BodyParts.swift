/// The parts of a multipart/byteranges body.
struct BodyParts {
    /// Content-Range of each.
    private(set) var ranges: [String] = []
    private(set) var contents: [[UInt8]] = []

    init(_ body: [UInt8], boundary: String) {
        let delimiter = Array("--\(boundary)".utf8)
        var rest = body[...]
        while let start = rest.firstRange(of: delimiter)?.upperBound {
            rest = rest[start...]
            if rest.starts(with: Array("--".utf8)) { return }
            guard let head = rest.firstRange(of: Array("\r\n\r\n".utf8)),
                let end = rest[head.upperBound...].firstRange(of: Array("\r\n".utf8) + delimiter)
            else { return }
            let lines = String(decoding: rest[..<head.lowerBound], as: UTF8.self).split(separator: "\r\n")
            let range = lines.first { $0.lowercased().hasPrefix("content-range:") }
            ranges.append(String(range?.dropFirst(14).drop { $0 == " " } ?? ""))
            contents.append(Array(rest[head.upperBound..<end.lowerBound]))
            rest = rest[end.lowerBound...]
        }
    }
}
