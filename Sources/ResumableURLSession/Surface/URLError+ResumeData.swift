import Foundation

extension URLError {
    /// With what the failed download can be resumed; `nil` where it cannot, and of errors of other tasks.
    public var downloadTaskResumeData: Data? { userInfo[NSURLSessionDownloadTaskResumeData] as? Data }

    /// With what the failed upload can be resumed; `nil` where it cannot, and of errors of other tasks.
    public var uploadTaskResumeData: Data? { userInfo[NSURLSessionUploadTaskResumeData] as? Data }
}
