import Foundation
import FoundationNetworking

extension URLSession {
    /// Creates a task that goes on with an upload.
    ///
    /// The data is used up when the task begins, not before. Where it is no usable resume data, the task fails with
    /// `URLError.unsupportedURL`; so it does in a plain `URLSession`.
    /// - Parameter resumeData: of ``FoundationNetworking/URLSessionUploadTask/cancel(byProducingResumeData:)`` or of an
    ///   error. The file that was uploaded must still exist and be unmodified.
    public func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        resumedUploadTask(resumeData, .delegate)
    }

    /// Creates a task that goes on with an upload and calls a handler when it has ended.
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
