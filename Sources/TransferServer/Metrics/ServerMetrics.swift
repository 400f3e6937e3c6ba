import SystemCalls
import UploadStorage

/// The counts of a running server. Its lock is taken where a request ends and where offsets become durable, never for a
/// piece of content.
final class ServerMetrics: StoreObserver {
    private let counts = Monitor(ServerCounts())

    /// What was counted by now.
    var snapshot: ServerCounts { counts.withLock { $0 } }

    func record(_ request: RequestSummary) { counts.withLock { $0.record(request) } }

    /// Counts content of a request that goes on, up to `total` bytes.
    func count(received total: Int64, of account: RequestAccount) {
        let bytes = total - account.countedReceived
        account.countedReceived = total
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
