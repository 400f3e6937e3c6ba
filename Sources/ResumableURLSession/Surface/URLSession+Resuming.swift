import Foundation
import FoundationNetworking

extension URLSession {
    /// Creates a task that resumes an upload.
    ///
    /// Until the task is resumed for the first time, the data can still be used for another task. If the data cannot be
    /// used, the task fails with `URLError.unsupportedURL`, as in a plain `URLSession`.
    /// - Parameter resumeData: the data of ``FoundationNetworking/URLSessionUploadTask/cancel(byProducingResumeData:)``
    ///   or of an error. The file that was uploaded must still exist and be unmodified.
    public func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        resumedUploadTask(resumeData, .delegate)
    }

    /// Creates a task that resumes an upload.
    /// - Parameters:
    ///   - resumeData: as for ``FoundationNetworking/URLSession/uploadTask(withResumeData:)``.
    ///   - completionHandler: called once, on the delegate queue, with the result of the task.
    public func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        resumedUploadTask(resumeData, .handler(completionHandler))
    }

    func resumedUploadTask(
        _ resumeData: Data, _ recipient: UploadTask.Recipient, request: URLRequest? = nil
    ) -> URLSessionUploadTask {
        let session = self as? ResumableURLSession
        return session?.makeUploadTask(resuming: resumeData, recipient, request: request)
            ?? UploadTask(refusing: resumeData, in: self, recipient)
    }
}

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The key of the resume data in the `userInfo` of a failed download's error. The name is Apple's.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

// swift-format-ignore: AlwaysUseLowerCamelCase
/// The key of the resume data in the `userInfo` of a failed upload's error. The name is Apple's.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"

extension URLError {
    /// The data to resume the failed download with; `nil` if it cannot be resumed, and in errors of other tasks.
    public var downloadTaskResumeData: Data? { userInfo[NSURLSessionDownloadTaskResumeData] as? Data }

    /// The data to resume the failed upload with; `nil` if it cannot be resumed, and in errors of other tasks.
    public var uploadTaskResumeData: Data? { userInfo[NSURLSessionUploadTaskResumeData] as? Data }
}

extension URLSessionUploadTask {
    /// Cancels an upload so that it can be resumed.
    ///
    /// The task ends with `URLError.cancelled`, whose `userInfo` contains the same data.
    /// - Parameter completionHandler: called once, on the delegate queue, when all work of the upload has ended. Its
    ///   argument is `nil` if the upload cannot be resumed: the server has not announced an upload resource, the task
    ///   has already ended, or it is a task of a plain `URLSession`.
    public func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        if let task = self as? UploadTask { return task.cancelTransfer(byProducingResumeData: completionHandler) }
        cancel()
        completionHandler(nil)
    }

    /// Cancels an upload so that it can be resumed.
    /// - Returns: the resume data; `nil` if the task cannot be resumed.
    public func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            cancel { continuation.resume(returning: $0) }
        }
    }
}

extension URLSessionDownloadTask {
    /// Cancels a download so that it can be resumed.
    /// - Returns: the resume data; `nil` if the task cannot be resumed.
    public func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            cancel { continuation.resume(returning: $0) }
        }
    }
}
