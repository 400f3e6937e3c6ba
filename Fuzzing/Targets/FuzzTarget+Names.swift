import HTTPSemantics
import UploadStorage

extension FuzzTarget {
    /// Content-Disposition, file names and paths of URLs: any name results in one plain file.
    static let names = FuzzTarget(
        name: "names",
        dictionary: [
            "attachment", "inline", "; filename=", "; filename*=", "UTF-8''", "iso-8859-1'en'", "%2F", "%2e", "%00",
            "\\",
            "..", "/", "CON", "COM\u{B9}", ".tar.gz", "\u{202E}", "\u{200B}", "C:", "\u{85}", " .",
        ],
        seeds: { generator in
            let parts = [
                "a.txt", "..", ".", "/", "\\", "%2e%2e", "%2F", "%00", " ", "nul", "COM1.x", ".hidden", "ü",
                "\u{202E}gpj",
                "C:", "%c3%bc", String(repeating: "long", count: 70), "\u{1F600}", "a\u{301}", "\u{FEFF}", "con .txt",
            ]
            return (0..<200).map { _ -> [UInt8] in
                let name = (0..<Int.random(in: 1...4, using: &generator)).map { _ in generator.pick(parts) }.joined()
                return Array(
                    generator.pick([
                        name, "/\(name)", "attachment; filename=\"\(name)\"", "inline; filename*=UTF-8''\(name)",
                        "Attachment ; filename = x; filename*=iso-8859-1'de'\(name)", "/files/\(name)/",
                    ]).utf8)
            }
        },
        check: { input throws(Violation) in
            let text = InputReader(input).text
            try checkName(text)
            if let disposition = ContentDisposition(parsing: text) {
                let written = disposition.serialized
                try require(Fields.isValidValue(written), "\(written.debugDescription) may not be sent")
                try require(written.utf8.allSatisfy { $0 < 0x80 }, "\(written) is not ASCII")
                let again = try require(ContentDisposition(parsing: written), "\(written) does not parse")
                try require(again.type == disposition.type, "\(written) has another type")
                try require(
                    Array(again.filename?.utf8 ?? "".utf8) == Array(disposition.filename?.utf8 ?? "".utf8),
                    "\(written) has another name")
                if let name = disposition.filename { try checkName(name) }
            }
            try checkPath(text)
            if let target = RequestTarget(parsing: text) { try checkPath(target.path) }
        })

    private static func checkName(_ text: String) throws(Violation) {
        guard let name = SafeFileName(sanitizing: text)?.value else { return }
        try require((1...SafeFileName.maxLength).contains(name.utf8.count), "\(name.utf8.count) bytes")
        try require(
            name.unicodeScalars.allSatisfy { !"/\\<>:\"|?*".unicodeScalars.contains($0) }, "\(name.debugDescription)")
        try require(
            name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }, "\(name.debugDescription)")
        try require(!name.hasPrefix(".") && !name.hasSuffix("."), "\(name) begins or ends with a dot")
        try require(
            SafeFileName(sanitizing: name)?.value.utf8.elementsEqual(name.utf8) ?? false, "\(name) changes once more")
        try require(PublishedName(segments: [name]) != nil, "\(name) cannot be published")
        try require((try? PathSegments(segments: [name])) != nil, "\(name) has no URL")
    }

    private static func checkPath(_ text: String) throws(Violation) {
        guard let path = try? PathSegments(decoding: text) else { return }
        for segment in path.segments {
            try require(!["", ".", ".."].contains(segment), "\(text) has a segment '\(segment)'")
            try require(segment.utf8.count <= PathSegments.maxSegmentLength, "\(text) is too long")
            try require(
                segment.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x2F && $0 != 0x5C && $0 != 0x7F }, "\(text) is unsafe")
        }
        try require(
            path.segments.isEmpty || PublishedName(segments: path.segments) != nil, "\(text) cannot be published")
        guard let again = try? PathSegments(decoding: path.percentEncoded) else {
            throw Violation("\(path.percentEncoded) does not parse")
        }
        try require(
            again.segments.map { Array($0.utf8) } == path.segments.map { Array($0.utf8) }
                && again.hasTrailingSlash == path.hasTrailingSlash, "\(path.percentEncoded) is another path")
    }
}
