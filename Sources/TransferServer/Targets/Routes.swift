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

    /// Whether a handler has the prefix `files`, as in `onward serve`.
    var hasFiles: Bool { entries.contains { $0.prefix == ["files"] } }

    /// Returns the route of a request target.
    func route(of target: RequestTarget) -> Route {
        if case .asterisk = target.form { return .server }
        switch target.path {
        case "/healthz", "/readyz": return .health(target.path)
        case "/metrics": return .metrics
        default: break
        }
        let path: PathSegments
        do { path = try PathSegments(decoding: target.path) } catch {
            return .invalid(error, isUpload: target.path.hasPrefix("/uploads/"))
        }
        if path.segments.first == "uploads" && path.segments.count <= 2 { return .upload(path) }
        return match(path, query: target.query).map { .target($0.handler, $0.target) } ?? .unknown
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

/// The resource that the target of a request names. Access and existence are not checked here.
enum Route: Sendable {
    /// `/healthz` or `/readyz`.
    case health(String)
    case metrics
    /// `*`: the server itself.
    case server
    /// `/uploads` or a path below it.
    case upload(PathSegments)
    case target(any TargetHandler, Target)
    /// An invalid path.
    case invalid(PathSegments.Refusal, isUpload: Bool)
    case unknown

    /// Whether the server reads content: not for health checks, metrics and `*`.
    var canReceiveContent: Bool {
        switch self {
        case .health, .metrics, .server: false
        case .upload, .target, .invalid, .unknown: true
        }
    }

    /// The `route` label of the metrics: the prefix of a handler, or one of a few other values.
    var label: String {
        switch self {
        case .health(let path): path
        case .metrics: "/metrics"
        case .server: "*"
        case .upload: "/uploads"
        case .target(_, let target):
            "/" + target.location.segments.dropLast(target.segments.count).joined(separator: "/")
        case .invalid, .unknown: "other"
        }
    }
}
