import HTTPSemantics
import UploadStorage

/// The format of a listing: its start, its entries and its end.
protocol ListingFormat: Sendable {
    func appendStart(to bytes: inout [UInt8])
    func append(_ entry: PublishedEntry, isFirst: Bool, to bytes: inout [UInt8])
    func appendEnd(to bytes: inout [UInt8])
}

extension PublishedEntry {
    /// The name as the last segment of a URL path, with a slash at the end for a directory.
    fileprivate var reference: String {
        // All names in a listing can be expressed in a URL.
        let segments = try? PathSegments(segments: [name], hasTrailingSlash: isDirectory)
        return String(segments?.percentEncoded.dropFirst() ?? "")
    }

    fileprivate var modified: String { HTTPDate(secondsSinceEpoch: modifiedSeconds).serialized }
}

/// A JSON array of objects, in the order of the entries.
struct JSONListing: ListingFormat {
    /// The URL of the directory, with a slash at its end.
    let url: String

    func appendStart(to bytes: inout [UInt8]) { bytes += "[".utf8 }

    func append(_ entry: PublishedEntry, isFirst: Bool, to bytes: inout [UInt8]) {
        bytes += (isFirst ? "{\"modified\":\"" : ",{\"modified\":\"").utf8
        bytes += entry.modified.utf8
        bytes += "\",\"name\":".utf8
        bytes.appendJSON(entry.name)
        if !entry.isDirectory { bytes += ",\"size\":\(entry.size)".utf8 }
        bytes += ",\"type\":\"\(entry.isDirectory ? "directory" : "file")\",\"url\":".utf8
        bytes.appendJSON(url + entry.reference)
        bytes += "}".utf8
    }

    func appendEnd(to bytes: inout [UInt8]) { bytes += "]".utf8 }
}

/// An HTML page with a table, in the order of the entries.
struct HTMLListing: ListingFormat {
    /// The directory's path as text.
    let title: String
    /// The relative reference from the URL of the request to the directory, such as `./`. Absolute paths could be wrong
    /// behind a proxy.
    let prefix: String

    func appendStart(to bytes: inout [UInt8]) {
        bytes +=
            """
            <!doctype html>
            <html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <title>
            """.utf8
        bytes.appendHTML(title)
        bytes +=
            """
            </title>
            <style>body{font:16px system-ui,sans-serif;margin:2rem;color-scheme:light dark}\
            td{padding:.2rem 1.5rem .2rem 0}td:nth-child(2){text-align:right;font-variant-numeric:tabular-nums}</style>
            <h1>
            """.utf8
        bytes.appendHTML(title)
        bytes += "</h1>\n<table>\n".utf8
    }

    func append(_ entry: PublishedEntry, isFirst: Bool, to bytes: inout [UInt8]) {
        bytes += "<tr><td><a href=\"".utf8
        bytes.appendHTML(prefix + entry.reference)
        bytes += "\">".utf8
        bytes.appendHTML(entry.name)
        bytes += (entry.isDirectory ? "/</a></td><td></td><td>" : "</a></td><td>\(entry.size)</td><td>").utf8
        bytes += entry.modified.utf8
        bytes += "</td></tr>\n".utf8
    }

    func appendEnd(to bytes: inout [UInt8]) { bytes += "</table>\n</html>\n".utf8 }
}

extension [UInt8] {
    /// Appends text with HTML escapes. The result is also valid in quoted attribute values.
    fileprivate mutating func appendHTML(_ text: String) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "&"): self += "&amp;".utf8
            case UInt8(ascii: "<"): self += "&lt;".utf8
            case UInt8(ascii: ">"): self += "&gt;".utf8
            case UInt8(ascii: "\""): self += "&quot;".utf8
            default: append(byte)
            }
        }
    }
}
