import HTTPSemantics
import ResumableUpload
import UploadStorage

/// What a directory holds: HTML, or pages of JSON if those are asked for. Neither needs memory for the entire directory.
struct FileListing {
    let store: UploadStore
    let resourcePolicy: ResourcePolicy

    func answer(to request: TargetRequest, directory: [String]) throws(StoreError) -> TargetAnswer {
        guard let directory = PublishedName.Directory(segments: directory) else { throw .notFound }
        return Self.prefersJSON(request.fields)
            ? try json(directory, request) : try html(directory, request)
    }

    /// Whether JSON is named and not less preferred than HTML is by its name. Everybody else gets HTML: clients that read
    /// listings, such as rclone, lftp and wget, accept anything and expect links.
    private static func prefersJSON(_ fields: Fields) -> Bool {
        guard let accept = AcceptField(fieldLines: fields.values("Accept")),
            let json = accept.weight(naming: "application/json"), json > 0
        else { return false }
        return json >= accept.weight(naming: "text/html") ?? 0
    }

    // No validator: the time of a directory says nothing of changes inside its files, and has the clock's resolution. A
    // wrong 304 would be worse than sending a listing again.
    private var fields: Fields {
        [
            "Vary": "Accept", "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": resourcePolicy.rawValue,
        ]
    }

    /// The complete directory in one document, in the order of the file system.
    private func html(
        _ directory: PublishedName.Directory, _ request: TargetRequest
    ) throws(StoreError) -> TargetAnswer {
        var fields = fields
        fields.append("Content-Type", "text/html; charset=utf-8")
        fields.append("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        // Without the slash at its end the last segment of the URL leads into the directory.
        let last = request.target.path.split(separator: "/").last.map { "\($0)/" } ?? ""
        let format = HTMLListing(
            title: "/" + directory.segments.joined(separator: "/"),
            prefix: request.target.path.hasSuffix("/") ? "./" : "./" + last)
        let content = ListingContent(try store.listing(of: directory), as: format)
        return .stream(status: 200, fields: fields, content)
    }

    /// One page, in the order of the names' bytes, with a link to the next one.
    private func json(
        _ directory: PublishedName.Directory, _ request: TargetRequest
    ) throws(StoreError) -> TargetAnswer {
        let query: ListingQuery
        do throws(ListingQuery.Refusal) { query = try ListingQuery(parsing: request.target.query) } catch {
            return .response(FinalResponse(ProblemDetails(error)))
        }
        let path = request.target.path
        let url = request.base.reference(to: path.hasSuffix("/") ? path : path + "/")
        let page = try store.page(of: directory, after: query.cursor, limit: query.limit)
        var fields = fields
        fields.append("Content-Type", "application/json")
        if let cursor = page.nextCursor {
            fields.append("Link", "<\(url)?\(query.serialized(after: cursor))>; rel=\"next\"")
        }
        return .stream(status: 200, fields: fields, ListingContent(page, as: JSONListing(url: url)))
    }
}
