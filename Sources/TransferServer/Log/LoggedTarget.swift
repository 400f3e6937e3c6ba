import HTTPSemantics
import UploadStorage

/// A request target for the log: the secret in the URL of an upload is removed, and control characters are replaced.
struct LoggedTarget {
    let text: String

    init(_ target: String) {
        let withoutQuery = target.utf8.firstIndex(of: UInt8(ascii: "?")).map { target[..<$0] } ?? target[...]
        let decoded = try? PathSegments(decoding: String(withoutQuery)).segments
        // A name below /files/ is not a secret.
        let isFile = decoded?.first == "files"
        if let decoded, !decoded.contains("uploads") {
            text = (isFile ? String(withoutQuery) : Self.withoutSecrets(String(withoutQuery))).printable(300)
            return
        }
        var segments = withoutQuery.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        // Requests are routed by decoded segments.
        let index = segments.firstIndex { (try? PathSegments(decoding: "/" + $0))?.segments == ["uploads"] }
        if let index, index + 1 < segments.count {
            // The next segment can contain the secret in any encoding.
            let secret = segments[index + 1]
            segments = Array(segments[...index]) + [UploadID(parsing: secret)?.description ?? "…"]
        }
        let joined = segments.joined(separator: "/")
        text = (isFile ? joined : Self.withoutSecrets(joined)).printable(300)
    }

    /// Removes everything that looks like the secret of an upload.
    private static func withoutSecrets(_ target: String) -> String {
        if target.utf8.count < 32 && !target.utf8.contains(UInt8(ascii: "%")) { return target }
        var result = ""
        var run = ""
        func end() {
            result += run.count >= 32 ? run.prefix(8) + "…" : run
            run = ""
        }
        // The server creates no URLs with encoded characters, so everything from the first encoded character on is
        // removed.
        let plain = target.prefix { $0 != "%" }
        for character in plain {
            if character.isHexDigit {
                run.append(character)
            } else {
                end()
                result.append(character)
            }
        }
        end()
        return plain.count < target.count ? result + "…" : result
    }
}

extension String {
    /// The first `limit` characters, with "?" in place of spaces and control characters.
    func printable(_ limit: Int) -> String {
        if utf8.count <= limit && utf8.allSatisfy({ (0x21...0x7E).contains($0) }) { return self }
        return String(
            String.UnicodeScalarView(
                unicodeScalars.prefix(limit).map { $0.value <= 0x20 || (0x7F..<0xA0).contains($0.value) ? "?" : $0 }))
    }
}
