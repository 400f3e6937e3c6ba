import SystemCalls
import UploadStorage

/// The counters of a running server. The lock is acquired when a request ends and when offsets become durable, but not
/// for each piece of content.
final class ServerMetrics: StoreObserver {
    private let counts = Monitor(ServerCounts())

    /// The current counters.
    var snapshot: ServerCounts { counts.withLock { $0 } }

    func record(_ request: RequestSummary) { counts.withLock { $0.record(request) } }

    /// Counts the content of a request in progress that was not counted before. `total` is the number of bytes that the
    /// request has received so far.
    func count(received total: Int64, of request: RequestContext) {
        let bytes = total - request.countedReceived
        request.countedReceived = total
        counts.withLock { $0.add(received: bytes) }
    }

    func count(expired uploads: Int) {
        if uploads > 0 { counts.withLock { $0.add(expired: uploads) } }
    }

    func count(refusedConnections connections: Int) { counts.withLock { $0.add(refusedConnections: connections) } }

    func observe(_ step: DurableStep, nanoseconds: Int64, isDone: Bool) {
        counts.withLock { $0.record(step, nanoseconds: nanoseconds, isDone: isDone) }
    }
}
