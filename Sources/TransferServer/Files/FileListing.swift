import FoundationEssentials
import HTTPSemantics
import ResumableUpload
import UploadStorage

/// What a directory holds: HTML for a browser, JSON when asked.
struct FileListing {
    let store: UploadStore

    private struct Entry: Encodable {
        let name: String
        let type: String
        let size: Int64?
        let modified: String
        let url: String
    }

    func response(to request: TargetRequest, directory: [String]) throws(StoreError) -> FinalResponse {
        let path = request.target.path.hasSuffix("/") ? request.target.path : request.target.path + "/"
        let base = request.base.reference(to: path)
        guard let directory = PublishedName.Directory(segments: directory) else { throw .notFound }
        let entries = try store.list(directory).compactMap { entry -> Entry? in
            guard let path = try? PathSegments(segments: [entry.name]).percentEncoded.dropFirst() else { return nil }
            return Entry(
                name: entry.name, type: entry.isDirectory ? "directory" : "file",
                size: entry.isDirectory ? nil : entry.size,
                modified: HTTPDate(secondsSinceEpoch: entry.modifiedSeconds).serialized,
                url: base + path + (entry.isDirectory ? "/" : ""))
        }
        var fields: Fields = ["Cache-Control": "no-cache", "Vary": "Accept", "X-Content-Type-Options": "nosniff"]
        if wantsHTML(request.fields) {
            fields.append("Content-Type", "text/html; charset=utf-8")
            fields.append("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
            return FinalResponse(status: 200, fields: fields, content: Array(page(entries, directory.segments).utf8))
        }
        fields.append("Content-Type", "application/json")
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        let data = (try? encoder.encode(entries)) ?? Data()
        return FinalResponse(status: 200, fields: fields, content: Array(data))
    }

    /// Browsers name HTML among what they accept; whoever names JSON, or nothing, gets JSON.
    private func wantsHTML(_ fields: Fields) -> Bool {
        let accept = fields["Accept"]?.lowercased() ?? ""
        return accept.contains("text/html") && !accept.contains("application/json")
    }

    private func page(_ entries: [Entry], _ path: [String]) -> String {
        let title = escaped("/" + path.joined(separator: "/"))
        let rows = entries.map { entry in
            let slash = entry.type == "directory" ? "/" : ""
            return "<tr><td><a href=\"\(escaped(entry.url))\">\(escaped(entry.name))\(slash)</a></td>"
                + "<td>\(entry.size.map { "\($0)" } ?? "")</td><td>\(entry.modified)</td></tr>"
        }
        return """
            <!doctype html>
            <html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <title>\(title)</title>
            <style>body{font:16px system-ui,sans-serif;margin:2rem;color-scheme:light dark}\
            td{padding:.2rem 1.5rem .2rem 0}td:nth-child(2){text-align:right;font-variant-numeric:tabular-nums}</style>
            <h1>\(title)</h1>
            <table>\(rows.joined(separator: "\n"))</table>
            </html>

            """
    }

    private func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.append(character)
            }
        }
        return result
    }
}
