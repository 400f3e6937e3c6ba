import HTTPSemantics

/// What the target of a request names, independent of access and existence.
enum RequestPlace: Sendable {
    /// `/healthz` or `/readyz`.
    case health(String)
    case metrics
    /// The server itself.
    case asterisk
    /// `/uploads` or something below it.
    case upload(PathSegments)
    case target(any TargetHandler, Target)
    /// An invalid path.
    case unreadable(PathSegments.Refusal)
    case nowhere

    init(_ request: IncomingRequest, routes: Routes) {
        if case .asterisk = request.target.form {
            self = .asterisk
            return
        }
        switch request.path {
        case "/healthz", "/readyz": self = .health(request.path)
        case "/metrics": self = .metrics
        default:
            do throws(PathSegments.Refusal) {
                let path = try PathSegments(decoding: request.path)
                if path.segments.first == "uploads" && path.segments.count <= 2 {
                    self = .upload(path)
                } else if let (handler, target) = routes.match(path, query: request.target.query) {
                    self = .target(handler, target)
                } else {
                    self = .nowhere
                }
            } catch {
                self = .unreadable(error)
            }
        }
    }

    /// Whether a request to it can have content: a target, an upload, or an invalid path.
    var canReceiveContent: Bool {
        switch self {
        case .health, .metrics, .asterisk: false
        case .upload, .target, .unreadable, .nowhere: true
        }
    }

    /// The route label of the metrics: one for each handler, and a few others.
    var label: String {
        switch self {
        case .health(let path): path
        case .metrics: "/metrics"
        case .asterisk: "*"
        case .upload: "/uploads"
        case .target(_, let target):
            "/" + target.location.segments.dropLast(target.segments.count).joined(separator: "/")
        case .unreadable, .nowhere: "other"
        }
    }
}
