import ConformanceKit
import HTTPSemantics

/// A part of a `multipart/byteranges` body.
package struct BodyPart {
    package let fields: Fields
    package let content: [UInt8]
}

extension ConformanceKit.Response {
    /// The parts of a `multipart/byteranges` body; `nil` if the body has another type or is not framed exactly
    /// (RFC 2046 section 5.1.1).
    ///
    /// Content-Range gives the length of a part's content, and the delimiter must follow it: content that looks like a
    /// delimiter has no effect.
    package var parts: [BodyPart]? {
        let prefix = "multipart/byteranges; boundary="
        guard let type = value("Content-Type"), type.hasPrefix(prefix) else { return nil }
        let delimiter = Array("--\(type.dropFirst(prefix.count))".utf8)
        let lineEnd = Array("\r\n".utf8)
        var remaining = content[...]
        func skip(_ bytes: [UInt8]) -> Bool {
            guard remaining.starts(with: bytes) else { return false }
            remaining = remaining.dropFirst(bytes.count)
            return true
        }
        var parts: [BodyPart] = []
        guard skip(delimiter) else { return nil }
        while true {
            if skip(Array("--".utf8)) { return remaining.isEmpty || remaining.elementsEqual(lineEnd) ? parts : nil }
            guard skip(lineEnd), let end = remaining.firstRange(of: lineEnd + lineEnd) else { return nil }
            var fields = Fields()
            for line in String(decoding: remaining[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n") {
                let pieces = line.split(separator: ":", maxSplits: 1).map(String.init)
                guard pieces.count == 2 else { return nil }
                fields.append(pieces[0], pieces[1])
            }
            remaining = remaining[end.upperBound...]
            guard let range = fields["Content-Range"].flatMap(Self.positions), remaining.count >= range.count else {
                return nil
            }
            parts.append(BodyPart(fields: fields, content: Array(remaining.prefix(range.count))))
            remaining = remaining.dropFirst(range.count)
            guard skip(lineEnd + delimiter) else { return nil }
        }
    }

    /// The positions of `bytes first-last/size`.
    private static func positions(_ text: String) -> ClosedRange<Int>? {
        guard text.hasPrefix("bytes "), let slash = text.lastIndex(of: "/") else { return nil }
        let ends = text[..<slash].dropFirst(6).split(separator: "-").compactMap { Int($0) }
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]...ends[1] : nil
    }
}
