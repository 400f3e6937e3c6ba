import Foundation
import FoundationNetworking
import ResumableTransfer

extension URLError {
    /// - Parameters:
    ///   - code: `nil` takes the one that says the same as the error.
    ///   - key: of the resume data.
    init(_ error: TransferError, code: Int? = nil, url: URL?, resumeDataKey key: String) {
        var userInfo: [String: Any] = [
            NSLocalizedDescriptionKey: error.message,
            NSUnderlyingErrorKey: error,
        ]
        if let url {
            userInfo[NSURLErrorFailingURLErrorKey] = url
            userInfo[Self.failingURLStringKey] = url.absoluteString
        }
        if let data = error.resumeData { userInfo[key] = data.data }
        self.init(URLError.Code(rawValue: code ?? error.urlErrorCode) ?? .unknown, userInfo: userInfo)
    }

    /// The value of a constant that Foundation has deprecated and `failureURLString` still reads.
    private static let failingURLStringKey = "NSErrorFailingURLStringKey"

    /// The code for a status of 400 and above of a download: Table 1 of Apple's page on `URLSessionDownloadTask`.
    static func downloadCode(forStatus status: Int) -> Int? {
        switch status {
        case ..<400: nil
        case 401, 407: URLError.Code.userAuthenticationRequired.rawValue
        case 403: URLError.Code.noPermissionsToReadFile.rawValue
        default: URLError.Code.fileDoesNotExist.rawValue
        }
    }
}
