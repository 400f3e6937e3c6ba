import HTTPSemantics
import ResumableUpload
import UploadStorage

/// The listing of a directory, as HTML or as pages of JSON. Neither needs memory for the entire directory.
struct FileListing {
    let store: UploadStore
    let resourcePolicy: ResourcePolicy

    func response(to request: TargetRequest, directory: [String]) throws(StoreError) -> Response {
        guard let directory = PublishedName.Directory(segments: directory) else { throw .notFound }
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
        let page = try store.page(of: directory, after: query.cursor, limit: query.limit)
        var fields = fields
        fields.append("Content-Type", "application/json")
        if let cursor = page.nextCursor {
            fields.append("Link", "<\(url)?\(query.serialized(after: cursor))>; rel=\"next\"")
        }
        return Response(
            status: 200, fields: fields, content: .stream(ListingContent(page, as: JSONListing(url: url))))
    }
}
