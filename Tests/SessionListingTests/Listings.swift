import Foundation
import ResumableURLSession

// The listings of Apple's articles "Pausing and resuming downloads" and "Pausing and resuming uploads", in their
// language mode, without Sendable. Other tests run them against servers, and scripts/test-snippets builds this file
// with the manifest of the article "Porting an app's uploads".

class ListingDownloads: NSObject, URLSessionDownloadDelegate {
    lazy var urlSession: URLSession = ResumableURLSession(configuration: .default, delegate: self, delegateQueue: nil)
    var resumeData: Data?
    var downloadTask: URLSessionDownloadTask?
    var failure: NSError?
    let isOver = DispatchSemaphore(value: 0)

    func pause(_ downloadTask: URLSessionDownloadTask) {
        downloadTask.cancel { resumeDataOrNil in
            guard let resumeData = resumeDataOrNil else {
                // download can't be resumed; remove from UI if necessary
                return
            }
            self.resumeData = resumeData
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        defer { isOver.signal() }
        guard let error = error else {
            // Handle success case.
            return
        }
        let userInfo = (error as NSError).userInfo
        if let resumeData = userInfo[NSURLSessionDownloadTaskResumeData] as? Data {
            self.resumeData = resumeData
        }
        // Perform any other error handling.
        failure = error as NSError
    }

    func resume() {
        guard let resumeData = resumeData else {
            // inform the user the download can't be resumed
            return
        }
        let downloadTask = urlSession.downloadTask(withResumeData: resumeData)
        downloadTask.resume()
        self.downloadTask = downloadTask
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
    }
}

class ListingUploads: NSObject, URLSessionTaskDelegate {
    lazy var session: URLSession = ResumableURLSession(configuration: .default, delegate: self, delegateQueue: nil)
    var resumeData: Data?
    var uploadTask: URLSessionUploadTask?
    var failure: NSError?
    let isOver = DispatchSemaphore(value: 0)

    func pause(_ uploadTask: URLSessionUploadTask) {
        uploadTask.cancel { resumeData in
            guard let resumeData else {
                // The upload can't be resumed; remove the upload from the UI if necessary.
                return
            }
            self.resumeData = resumeData
        }
    }

    func upload(_ request: URLRequest, _ fileURL: URL) async throws -> Int {
        do {
            let (data, response) = try await session.upload(for: request, fromFile: fileURL)
            _ = response
            return data.count
        } catch let error as URLError {
            guard let resumeData = error.uploadTaskResumeData else {
                // The upload can't be resumed.
                return -1
            }
            self.resumeData = resumeData
        }
        return -2
    }

    func resume() {
        guard let resumeData = self.resumeData else {
            // Inform the user that the upload can't be resumed.
            return
        }

        let uploadTask = session.uploadTask(withResumeData: resumeData)
        uploadTask.resume()
        self.uploadTask = uploadTask
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        failure = error as NSError?
        isOver.signal()
    }
}

// The methods of delegates in Apple's article "Handling an authentication challenge" and in the pages on redirections and
// metrics.

class ListingConnections: NSObject, URLSessionTaskDelegate {
    lazy var session: URLSession = ResumableURLSession(configuration: .default, delegate: self, delegateQueue: nil)
    var credentials: URLCredential?
    var redirections: [URL?] = []
    var requestDurations: [TimeInterval?] = []
    let isOver = DispatchSemaphore(value: 0)

    func credentialsFromUI() -> URLCredential? { credentials }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let authMethod = challenge.protectionSpace.authenticationMethod
        guard authMethod == NSURLAuthenticationMethodHTTPBasic else {
            completionHandler(.performDefaultHandling, nil)
            return
        }
        guard let credential = credentialsFromUI() else {
            completionHandler(.cancelAuthenticationChallenge, nil)
            return
        }
        completionHandler(.useCredential, credential)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        redirections.append(request.url)
        completionHandler(request)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        for transaction in metrics.transactionMetrics {
            let start = transaction.fetchStartDate
            requestDurations.append(start.flatMap { transaction.responseEndDate?.timeIntervalSince($0) })
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        isOver.signal()
    }
}
