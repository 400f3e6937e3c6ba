import Foundation
import FoundationNetworking
import ResumableTransfer

extension URLSessionTask {
    /// The times of the ended requests of this task, in all its attempts and in order. If there were more than 1,000,
    /// only the last 1,000 are included. Empty for a task that FoundationNetworking runs.
    ///
    /// They are complete when the end of the task is reported. They replace the metrics that the delegate method
    /// `urlSession(_:task:didFinishCollecting:)` gets on Apple's platforms: FoundationNetworking declares the classes
    /// of these metrics, but other libraries cannot create objects of them.
    public var requestMetrics: [RequestMetrics] {
        (self as? any TransferTask)?.core.withLock { $0.metrics } ?? []
    }
}
