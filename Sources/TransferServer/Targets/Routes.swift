import HTTPSemantics

/// The handlers of a server by the first segments of their URLs.
struct Routes: Sendable {
    private let handlers: [HandlerRoute]
    /// The segments of the own prefix, which precede the server's own paths, such as `uploads`.
    private let own: [String]
    private let uploads: [String]
    /// The path of these segments in percent-encoding, without a slash at its end.
    private let ownPath: String
    private let ownPaths: OwnPaths
    /// The routes of the server's own resources by their paths.
    private let ownRoutes: [String: RequestRoute]

    /// - Parameters:
    ///   - handlers: prefixes without slashes at the ends, such as `files` or `media/incoming`.
    ///   - ownPrefix: see ``ServerConfiguration/ownPrefix``.
    init(_ handlers: [(prefix: String, handler: any TargetHandler)], ownPrefix: String = "") {
        own = ownPrefix.split(separator: "/").map(String.init)
        uploads = own + ["uploads"]
        ownPaths = OwnPaths(ownPrefix)
        ownPath = ownPaths.percentEncodedPrefix
        ownRoutes = [
            ownPath + "/healthz": .health("/healthz"), ownPath + "/readyz": .health("/readyz"),
            ownPath + "/metrics": .metrics, ownPath + "/onward/session": .session, ownPath + "/onward/usage": .usage,
        ]
        self.handlers =
            handlers
            .map { HandlerRoute($1, prefix: $0.split(separator: "/").map(String.init)) }
            .sorted { $0.prefix.count > $1.prefix.count }
    }

    /// Whether files are below `/files/` and uploads below `/uploads/`, as in `onward serve` without `--own-prefix`.
    var hasFiles: Bool { own.isEmpty && handlers.contains { $0.prefix == ["files"] } }

    /// Whether all handlers serve files.
    var hasOnlyFiles: Bool { handlers.allSatisfy(\.isForFiles) }

    /// The path of an upload resource, the value of `Location`.
    func path(of id: UploadID) -> String { uploadsPath + id.text }

    /// The beginning of the paths of all upload resources.
    var uploadsPath: String { ownPath + "/uploads/" }

    /// The path of the metrics, with a slash at its end, so that a token with the prefix `/metrics/` covers it.
    var metricsPath: PathSegments? { try? PathSegments(decoding: ownPath + "/metrics/") }

    /// The path above the server's own paths in percent-encoding, with a slash at its end.
    var ownBase: String { ownPath + "/" }

    /// The path of the usage of all principals, with a slash at its end, so that a token with this prefix covers it.
    var usagePath: PathSegments? { try? PathSegments(segments: own + ["onward", "usage"], hasTrailingSlash: true) }

    /// The directory of the files that the page for browsers shows; `nil` if the server has no files at this place.
    var filesTarget: (route: HandlerRoute, target: Target)? {
        guard let path = try? PathSegments(segments: own + ["files"], hasTrailingSlash: true),
            let handler = handler(for: path), handler.isForFiles, handler.prefix == path.segments
        else { return nil }
        return (handler, Self.target(path, below: handler, query: nil))
    }

    /// Returns the route of a request target.
    func route(of target: RequestTarget) -> RequestRoute {
        if case .asterisk = target.form { return .server }
        if let route = ownRoutes[target.path] { return route }
        if target.path.hasPrefix(ownPath + "/onward/"),
            let route = ModuleFile.route(of: target.path.dropFirst(ownPath.utf8.count))
        {
            return route
        }
        let path: PathSegments
        do { path = try PathSegments(decoding: target.path) } catch {
            if let route = forwardedRoute(of: target) { return route }
            return .invalid(error, isUpload: target.path.hasPrefix(ownPath + "/uploads/"))
        }
        if path.segments.count <= own.count + 2, path.segments.starts(with: uploads) {
            return .upload(path.segments.count > own.count + 1 && !path.hasTrailingSlash ? path.segments.last : nil)
        }
        guard let handler = handler(for: path) else {
            return path.segments == own && path.hasTrailingSlash && filesTarget != nil ? .home : .unknown
        }
        return .target(handler, Self.target(path, below: handler, query: target.query))
    }

    /// The route of a path that is not valid for files and uploads, if its handler forwards requests. The path must belong
    /// to the same handler however the other server reads it.
    private func forwardedRoute(of target: RequestTarget) -> RequestRoute? {
        guard let path = PathSegments.decodeForwarded(target.path), !ownPaths.contains(path.normalized),
            let handler = handlers.first(where: { path.segments.starts(with: $0.prefix) }), handler.streaming != nil,
            handlers.first(where: { path.normalized.starts(with: $0.prefix) })?.prefix == handler.prefix,
            let location = try? PathSegments(segments: handler.prefix, hasTrailingSlash: true)
        else { return nil }
        let forwarded = Target(
            path: target.path, segments: Array(path.segments.dropFirst(handler.prefix.count)), isCollection: false,
            query: target.query, location: location, isForwardedOnly: true)
        return .target(handler, forwarded)
    }

    /// The target of an upload that was saved as `Target.reference`.
    func match(reference: String) -> (route: HandlerRoute, target: Target)? {
        guard let target = RequestTarget(parsing: reference), let path = try? PathSegments(decoding: target.path)
        else { return nil }
        return match(path, query: target.query)
    }

    /// The handler of a path, and the resource below its prefix.
    func match(_ path: PathSegments, query: String?) -> (route: HandlerRoute, target: Target)? {
        handler(for: path).map { ($0, Self.target(path, below: $0, query: query)) }
    }

    /// The handler with the longest prefix. A handler for all paths, or for a part of the own prefix, does not get the
    /// server's own paths, in any spelling.
    private func handler(for path: PathSegments) -> HandlerRoute? {
        let isOwn = ownPaths.containsServerResource(path.segments)
        return handlers.first { path.segments.starts(with: $0.prefix) && (!isOwn || $0.prefix.count > own.count) }
    }

    private static func target(_ path: PathSegments, below handler: HandlerRoute, query: String?) -> Target {
        let remaining = Array(path.segments.dropFirst(handler.prefix.count))
        return Target(
            path: path.percentEncoded, segments: remaining, isCollection: remaining.isEmpty || path.hasTrailingSlash,
            query: query, location: path, isForwardedOnly: false)
    }
}

/// The handler of all paths below a prefix.
///
/// The protocols to which the handler conforms are found out only once: a cast for each request would cost as much as
/// the decision about the request.
final class HandlerRoute: Sendable {
    /// The segments of the prefix.
    let prefix: [String]
    let handler: any TargetHandler
    /// The handler, if it forwards requests; otherwise `nil`.
    let streaming: (any StreamingHandler)?
    /// The handler, if its methods do not need a task; otherwise `nil`.
    let synchronous: (any SynchronousHandler)?
    let isForFiles: Bool
    /// The `route` label of the metrics.
    let label: String

    init(_ handler: any TargetHandler, prefix: [String]) {
        self.prefix = prefix
        self.handler = handler
        streaming = handler as? any StreamingHandler
        synchronous = handler as? any SynchronousHandler
        isForFiles = handler is FilesHandler
        label = "/" + prefix.joined(separator: "/")
    }
}

/// The resource that the target of a request names. Access and existence are not checked here.
enum RequestRoute: Sendable {
    /// `/healthz` or `/readyz`.
    case health(String)
    case metrics
    /// The session of a browser, which has a cookie.
    case session
    /// The usage of the principal, or of all principals.
    case usage
    /// The path above the own paths, if no handler has it: browsers get the page with the files.
    case home
    /// The JavaScript client or its types; `nil` if the URL has another version than the server.
    case module(ModuleFile?)
    /// `*`: the server itself.
    case server
    /// An upload resource, with its identifier as the client sent it; `nil` for `/uploads` itself.
    case upload(String?)
    case target(HandlerRoute, Target)
    /// An invalid path.
    case invalid(PathSegments.Refusal, isUpload: Bool)
    case unknown

    /// Whether the server reads content: not for health checks, metrics, sessions, usage, the module and `*`.
    var canReceiveContent: Bool {
        switch self {
        case .health, .metrics, .session, .usage, .module, .server: false
        case .home, .upload, .target, .invalid, .unknown: true
        }
    }

    /// Whether the handler forwards requests that do not use the upload protocol.
    var isForwarded: Bool { if case .target(let handler, _) = self { handler.streaming != nil } else { false } }

    /// The `route` label of the metrics: the prefix of a handler, or one of a few other values.
    var label: String {
        switch self {
        case .health(let path): path
        case .metrics: "/metrics"
        case .session, .usage, .module: "/onward"
        case .home: "/"
        case .server: "*"
        case .upload: "/uploads"
        case .target(let handler, _): handler.label
        case .invalid, .unknown: "other"
        }
    }
}

/// The paths that the server uses itself. They belong to no other handler, not even to one for all paths.
package struct OwnPaths: Sendable {
    /// The first segments below the prefix.
    private static let names = ["files", "uploads", "healthz", "readyz", "metrics", "onward"]

    private let prefix: [String]

    /// - Parameter prefix: ``ServerConfiguration/ownPrefix``.
    package init(_ prefix: String) { self.prefix = prefix.split(separator: "/").map(String.init) }

    /// The prefix without a slash at its end.
    package var percentEncodedPrefix: String {
        prefix.isEmpty
            ? "" : (try? PathSegments(segments: prefix))?.percentEncoded ?? "/" + prefix.joined(separator: "/")
    }

    /// The own path that is equal to this one or above it; `nil` if there is none.
    package func path(of segments: [String]) -> String? {
        contains(segments) ? segments.prefix(prefix.count + 1).reduce("") { $0 + "/" + $1 } : nil
    }

    /// Whether the path is an own path or below one.
    package func contains(_ segments: [String]) -> Bool {
        segments.count > prefix.count && segments.starts(with: prefix) && Self.names.contains(segments[prefix.count])
    }

    /// Whether the path is an own path of every server, or below one. Only `onward serve` uses the path of files itself;
    /// in other programs the path of each handler is the choice of the program.
    func containsServerResource(_ segments: [String]) -> Bool {
        contains(segments) && segments[prefix.count] != "files"
    }

    /// Whether the path is that of the upload resources or below it.
    package func isUpload(_ segments: [String]) -> Bool {
        segments.count > prefix.count && segments.starts(with: prefix) && segments[prefix.count] == "uploads"
    }
}
