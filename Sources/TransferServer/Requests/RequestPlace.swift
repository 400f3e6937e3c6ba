import HTTPSemantics

/// What a request's target names, whoever asks and whether it exists.
enum RequestPlace: Sendable {
    /// `/healthz` or `/readyz`.
    case health(String)
    case metrics
    /// The server as a whole.
    case asterisk
    /// `/uploads` or something below it.
    case upload(PathSegments)
    case target(any TargetHandler, Target)
    /// A path that names nothing in any spelling.
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

    /// Whether it takes content: a target, an upload, or what might be meant for one.
    var canReceiveContent: Bool {
        switch self {
        case .health, .metrics, .asterisk: false
        case .upload, .target, .unreadable, .nowhere: true
        }
    }

    /// One of as many words as there are handlers, and a few more.
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
