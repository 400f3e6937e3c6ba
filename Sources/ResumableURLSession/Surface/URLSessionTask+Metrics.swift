import Foundation
import FoundationNetworking
import ResumableTransfer

extension URLSessionTask {
    /// The times of the requests of this task that have ended, of all its attempts, in order: of the last 1,000, if
    /// there were more. Empty for a task that FoundationNetworking runs.
    ///
    /// They are complete when the end of the task is reported. They replace the metrics that the delegate method
    /// `urlSession(_:task:didFinishCollecting:)` has on Apple's platforms: FoundationNetworking declares the classes of
    /// these metrics, but other libraries cannot create objects of them.
    public var requestMetrics: [RequestMetrics] {
        (self as? any TransferTask)?.core.withLock { $0.metrics } ?? []
    }
}
