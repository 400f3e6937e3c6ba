import HTTPSemantics
import SystemCalls

/// Serves `/metrics` to tokens that may read everything or have the prefix `/metrics/`. A server without tokens serves
/// it to every authorized request.
struct MetricsEndpoint {
    let service: TransferService
    let request: RequestContext
    let identity: Identity

    private static let processStart = ProcessControl.startSeconds()

    func response() -> Response {
        if let refusal = service.refusal(of: identity, .readMetrics, at: PathSegments.metrics) {
            return Response(refusal)
        }
        guard request.method == .get || request.method == .head else {
            return Response(ProblemDetails.methodNotAllowed, fields: ["Allow": "GET, HEAD"])
        }
        let fields: Fields = ["Content-Type": Exposition.mediaType, "Cache-Control": "no-store"]
        return Response(status: 200, fields: fields, content: Array(report.text.utf8))
    }

    private var report: MetricsReport {
        MetricsReport(
            counts: service.metrics.snapshot, store: try? service.store.statistics(),
            openConnections: service.connections.count,
            maximumConnections: service.configuration.maximumConnections,
            isReady: service.unreadiness.isEmpty, droppedLogLines: service.log.droppedLines,
            processStart: Self.processStart,
            version: service.configuration.version)
    }
}

extension PathSegments {
    /// The path with a slash at its end, so that a token with the prefix `/metrics/` covers it.
    fileprivate static let metrics = try? PathSegments(decoding: "/metrics/")
}
