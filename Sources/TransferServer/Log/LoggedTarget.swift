import HTTPSemantics
import UploadStorage

/// A request target as it may be logged: the secret of an upload's URL is cut, control characters cannot forge lines.
struct LoggedTarget {
    let text: String

    init(_ target: String) {
        let withoutQuery = target.prefix { $0 != "?" }
        var segments = withoutQuery.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        // Requests are routed by what segments decode to.
        let index = segments.firstIndex { (try? PathSegments(decoding: "/" + $0))?.segments == ["uploads"] }
        if let index, index + 1 < segments.count {
            // Whatever follows may hold the secret in some spelling.
            let secret = segments[index + 1]
            segments = Array(segments[...index]) + [UploadID(parsing: secret)?.description ?? "…"]
        }
        let joined = segments.joined(separator: "/")
        // A name below /files/ is no secret, whatever it looks like.
        let isFile = (try? PathSegments(decoding: String(withoutQuery)))?.segments.first == "files"
        text = (isFile ? joined : Self.withoutSecrets(joined)).printable(300)
    }

    /// Cuts what looks like an upload's secret, wherever it stands.
    private static func withoutSecrets(_ target: String) -> String {
        var result = ""
        var run = ""
        func end() {
            result += run.count >= 32 ? run.prefix(8) + "…" : run
            run = ""
        }
        // An encoded character is no part of any URL that we gave out.
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
    /// The first characters, without any that could forge a line or reach a terminal.
    func printable(_ limit: Int) -> String {
        String(
            String.UnicodeScalarView(
                unicodeScalars.prefix(limit).map { $0.value <= 0x20 || (0x7F..<0xA0).contains($0.value) ? "?" : $0 }))
    }
}
