import Foundation
import FoundationNetworking

extension URLSessionUploadTask {
    /// Cancels an upload in a way that it can be resumed.
    ///
    /// The task ends with `URLError.cancelled`, whose `userInfo` holds the same data.
    /// - Parameter completionHandler: called once, on the delegate queue, when nothing of the upload is running any
    ///   more; with `nil` if the upload cannot be resumed: the server has named no upload resource, the task had
    ///   ended before, or it is a task of a plain `URLSession`.
    public func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        if let task = self as? UploadTask { return task.cancelTransfer(byProducingResumeData: completionHandler) }
        cancel()
        completionHandler(nil)
    }

    /// Cancels an upload in a way that it can be resumed.
    /// - Returns: what it can be resumed with; `nil` if it cannot.
    public func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            cancel { continuation.resume(returning: $0) }
        }
    }
}

extension URLSessionDownloadTask {
    /// Cancels a download in a way that it can be resumed.
    /// - Returns: what it can be resumed with; `nil` if it cannot.
    public func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            cancel { continuation.resume(returning: $0) }
        }
    }
}
