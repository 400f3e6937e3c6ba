import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import Testing

@testable import ResumableURLSession

@Suite("Conversion of errors to URLError")
struct URLErrorTests {
    @Test("the keys of the user info have the same values as on Apple platforms")
    func keys() {
        #expect(NSURLSessionDownloadTaskResumeData == "NSURLSessionDownloadTaskResumeData")
        #expect(NSURLSessionDownloadTaskResumeData == URLSessionDownloadTaskResumeData)
        #expect(NSURLSessionUploadTaskResumeData == "NSURLSessionUploadTaskResumeData")
    }

    @Test("resume data can be read from any URLError")
    func properties() {
        let data = Data("resume".utf8)
        let download = URLError(.networkConnectionLost, userInfo: [NSURLSessionDownloadTaskResumeData: data])
        #expect(download.downloadTaskResumeData == data && download.uploadTaskResumeData == nil)
        let upload: any Error = URLError(.timedOut, userInfo: [NSURLSessionUploadTaskResumeData: data])
        #expect((upload as? URLError)?.uploadTaskResumeData == data)
        #expect((upload as NSError).userInfo[NSURLSessionUploadTaskResumeData] as? Data == data)
        #expect(URLError(.timedOut).uploadTaskResumeData == nil)
    }

    @Test("a URLError contains the description, the failing URL and the underlying TransferError")
    func content() throws {
        let url = try #require(URL(string: "http://example.org/a"))
        let error: any Error = URLError(
            TransferError(.connectionLost, "Lost."), url: url, resumeDataKey: NSURLSessionUploadTaskResumeData)
        let converted = error as NSError
        #expect(converted.domain == NSURLErrorDomain && converted.code == NSURLErrorNetworkConnectionLost)
        #expect(converted.localizedDescription == "Lost.")
        let urlError = try #require(error as? URLError)
        #expect(urlError.failingURL == url)
        #expect(converted.userInfo["NSErrorFailingURLStringKey"] as? String == url.absoluteString)
        #expect((urlError.userInfo[NSUnderlyingErrorKey] as? TransferError)?.code == .connectionLost)
    }

    @Test(
        "a download with an error status fails with the code of Table 1 of Apple's page on URLSessionDownloadTask",
        arguments: [
            (401, NSURLErrorUserAuthenticationRequired), (403, NSURLErrorNoPermissionsToReadFile),
            (407, NSURLErrorUserAuthenticationRequired), (404, NSURLErrorFileDoesNotExist),
            (500, NSURLErrorFileDoesNotExist), (416, NSURLErrorFileDoesNotExist),
        ])
    func table(status: Int, code: Int) {
        #expect(URLError.downloadCode(forStatus: status) == code)
    }

    @Test("a status below 400 is no error")
    func success() {
        #expect(URLError.downloadCode(forStatus: 200) == nil && URLError.downloadCode(forStatus: 304) == nil)
    }

    @Test("every error code of a transfer is converted to a code of URLError")
    func codes() {
        for code in TransferError.Code.allCases {
            let error = URLError(TransferError(code, ""), url: nil, resumeDataKey: "")
            #expect(code == .internalFailure || error.code != .unknown, "\(code)")
        }
    }

    @Test("a lost connection is retried if the transfer can resume, but a timeout is never retried")
    func policy() {
        let lost = TransferError(.connectionLost, "")
        #expect(InterruptionPolicy.tolerates(lost, canResume: true))
        #expect(!InterruptionPolicy.tolerates(lost, canResume: false))
        #expect(!InterruptionPolicy.tolerates(TransferError(.timedOut, ""), canResume: true))
    }
}
