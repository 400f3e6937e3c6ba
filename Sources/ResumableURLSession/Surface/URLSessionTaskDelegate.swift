import Foundation
import FoundationNetworking

/// The delegate of tasks, as on Apple's platforms: FoundationNetworking's protocol, and the two methods in which it
/// differs from Apple's.
public protocol URLSessionTaskDelegate: FoundationNetworking.URLSessionTaskDelegate {
    /// Called on the delegate queue for each interim response (status 100 to 199), including the 104 of uploads.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)

    /// Called on the delegate queue, immediately before the end of the task is reported. It is not called for tasks that
    /// FoundationNetworking runs.
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics)
}

extension URLSessionTaskDelegate {
    /// Ignores the response.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {}

    /// Ignores the metrics.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {}
}

/// The delegate of data tasks and uploads, as on Apple's platforms.
public protocol URLSessionDataDelegate: FoundationNetworking.URLSessionDataDelegate, URLSessionTaskDelegate {}

/// The delegate of downloads, as on Apple's platforms.
public protocol URLSessionDownloadDelegate: FoundationNetworking.URLSessionDownloadDelegate, URLSessionTaskDelegate {}

/// The protocol of every delegate of a task, including one in a file that imports only FoundationNetworking.
typealias AnyTaskDelegate = FoundationNetworking.URLSessionTaskDelegate
