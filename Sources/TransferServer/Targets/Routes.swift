import HTTPSemantics

/// The handlers of a server by the first segments of their URLs.
struct Routes: Sendable {
    private let entries: [(prefix: [String], handler: any TargetHandler)]

    /// - Parameter handlers: prefixes without slashes at the ends, such as `files` or `media/incoming`.
    init(_ handlers: [(prefix: String, handler: any TargetHandler)]) {
        entries =
            handlers
            .map { ($0.prefix.split(separator: "/").map(String.init), $0.handler) }
            .sorted { $0.prefix.count > $1.prefix.count }
    }

    /// The target of an upload that was saved as `Target.reference`.
    func match(reference: String) -> (handler: any TargetHandler, target: Target)? {
        guard let target = RequestTarget(parsing: reference), let path = try? PathSegments(decoding: target.path)
        else { return nil }
        return match(path, query: target.query)
    }

    /// The handler of a path, and the resource below its prefix.
    func match(_ path: PathSegments, query: String?) -> (handler: any TargetHandler, target: Target)? {
        for (prefix, handler) in entries where path.segments.starts(with: prefix) {
            let remaining = Array(path.segments.dropFirst(prefix.count))
            let target = Target(
                path: path.percentEncoded, segments: remaining,
                isCollection: remaining.isEmpty || path.hasTrailingSlash,
                query: query, location: path)
            return (handler, target)
        }
        return nil
    }
}
