import HTTPSemantics
import ResumableUpload
import SystemCalls
import UploadStorage

/// The listing of a directory: as the web interface, as plain HTML, or as pages of JSON. None of them needs memory for
/// the entire directory.
struct FileListing {
    let store: UploadStore
    let resourcePolicy: ResourcePolicy

    func response(to request: TargetRequest, directory: [String]) throws(StoreError) -> Response {
        guard let directory = PublishedName.Directory(segments: directory) else { throw .notFound }
        if let page = request.page { return try self.page(page, directory) }
        return Self.prefersJSON(request.fields)
            ? try json(directory, request) : try html(directory, request)
    }

    /// Whether Accept names JSON with at least the weight of HTML. All other requests get HTML, because clients such as
    /// rclone, lftp and wget accept anything and expect links.
    private static func prefersJSON(_ fields: Fields) -> Bool {
        guard let accept = AcceptField(fieldLines: fields.values("Accept")),
            let json = accept.weight(ofListedType: "application/json"), json > 0
        else { return false }
        return json >= accept.weight(ofListedType: "text/html") ?? 0
    }

    // There is no validator, because the modification time of a directory does not change with its files, and is
    // coarse. A wrong 304 would be worse than another listing.
    private var fields: Fields {
        [
            "Vary": "Accept", "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": resourcePolicy.rawValue,
        ]
    }

    private func page(_ request: PageRequest, _ directory: PublishedName.Directory) throws(StoreError) -> Response {
        var fields = fields
        for field in request.page.fields { fields.set(field.name, field.value) }
        let content = ListingContent(try store.listing(of: directory), as: PageListing(request: request))
        return Response(status: 200, fields: fields, content: .stream(content))
    }

    /// The complete directory in one document, in the order of the file system.
    private func html(
        _ directory: PublishedName.Directory, _ request: TargetRequest
    ) throws(StoreError) -> Response {
        var fields = fields
        fields.append("Content-Type", "text/html; charset=utf-8")
        fields.append("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        // If the URL does not end with a slash, links must start with its last segment.
        let last = request.target.path.split(separator: "/").last.map { "\($0)/" } ?? ""
        let format = HTMLListing(
            title: "/" + directory.segments.joined(separator: "/"),
            prefix: request.target.path.hasSuffix("/") ? "./" : "./" + last)
        let content = ListingContent(try store.listing(of: directory), as: format)
        return Response(status: 200, fields: fields, content: .stream(content))
    }

    /// One page, ordered by the bytes of the names, with a link to the next page.
    private func json(
        _ directory: PublishedName.Directory, _ request: TargetRequest
    ) throws(StoreError) -> Response {
        let query: ListingQuery
        do throws(ListingQuery.Refusal) { query = try ListingQuery(parsing: request.target.query) } catch {
            return Response(ProblemDetails(error))
        }
        let path = request.target.path
        let url = request.base.reference(to: path.hasSuffix("/") ? path : path + "/")
        let page = try store.page(of: directory, after: query.cursor, prefix: query.prefix, limit: query.limit)
        var fields = fields
        fields.append("Content-Type", "application/json")
        if let cursor = page.nextCursor {
            fields.append("Link", "<\(url)?\(query.serialized(after: cursor))>; rel=\"next\"")
        }
        return Response(
            status: 200, fields: fields, content: .stream(ListingContent(page, as: JSONListing(url: url))))
    }
}

/// The format of a listing: its start, its entries and its end.
protocol ListingFormat: Sendable {
    /// The maximum number of entries; `nil`: all entries are listed.
    var maxEntries: Int? { get }
    func appendStart(to bytes: inout [UInt8])
    func append(_ entry: PublishedEntry, isFirst: Bool, to bytes: inout [UInt8])
    /// - Parameter isComplete: whether there are no entries beyond ``maxEntries``.
    func appendEnd(isComplete: Bool, to bytes: inout [UInt8])
}

extension ListingFormat {
    var maxEntries: Int? { nil }
}

extension PublishedEntry {
    /// The name as the last segment of a URL path, with a slash at the end for a directory.
    var reference: String {
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

    func appendEnd(isComplete: Bool, to bytes: inout [UInt8]) { bytes += "]".utf8 }
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

    func appendEnd(isComplete: Bool, to bytes: inout [UInt8]) { bytes += "</table>\n</html>\n".utf8 }
}

/// The content of a listing. An entry is read and formatted only when the connection can send it.
final class ListingContent: ContentStream {
    private enum Stage {
        case start, entries, ended
    }

    private struct State {
        let listing: PublishedListing
        var stage = Stage.start
        /// The number of entries so far.
        var count = 0
        /// The output; the bytes from `sent` on are not sent yet.
        var written: [UInt8] = []
        var sent = 0
    }

    private let state: Monitor<State>
    private let format: any ListingFormat

    init(_ listing: sending PublishedListing, as format: any ListingFormat) {
        state = Monitor(State(listing: listing))
        self.format = format
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int64) throws -> Int {
        try state.withLock { (state) throws(StoreError) in
            var filled = 0
            while filled < buffer.count {
                if state.sent == state.written.count, try !write(to: &state) { break }
                let count = min(buffer.count - filled, state.written.count - state.sent)
                UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
                    .copyBytes(from: state.written[state.sent..<state.sent + count])
                filled += count
                state.sent += count
            }
            return filled
        }
    }

    /// Replaces the sent output with the next part; returns false if there is no next part.
    private func write(to state: inout State) throws(StoreError) -> Bool {
        state.written.removeAll(keepingCapacity: true)
        state.sent = 0
        switch state.stage {
        case .start:
            format.appendStart(to: &state.written)
            state.stage = .entries
        case .entries:
            let entry = try state.listing.next()
            if let entry, format.maxEntries.map({ state.count < $0 }) ?? true {
                format.append(entry, isFirst: state.count == 0, to: &state.written)
                state.count += 1
            } else {
                format.appendEnd(isComplete: entry == nil, to: &state.written)
                state.stage = .ended
            }
        case .ended: return false
        }
        return true
    }
}
