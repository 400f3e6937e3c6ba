import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import SystemCalls

extension HTTPURLResponse {
    /// Creates a response from these fields. The values of fields with the same name are joined.
    convenience init?(status: Status, fields: Fields, url: URL?) {
        guard let url else { return nil }
        var lines: [String: String] = [:]
        var names: [String: String] = [:]
        for field in fields {
            let name = names[field.name.lowercased(), default: field.name]
            names[field.name.lowercased()] = name
            let value = field.value.trimmingCharacters(in: .whitespaces)
            lines[name] = lines[name].map { "\($0), \(value)" } ?? value
        }
        self.init(url: url, statusCode: Int(status.rawValue), httpVersion: "HTTP/1.1", headerFields: lines)
    }
}

extension URLError {
    /// - Parameters:
    ///   - code: the code of the new error; `nil`: the code with the same meaning as `error`.
    ///   - key: the key of the resume data in `userInfo`.
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
        let own = (error.underlying as? TaskFailure)?.urlErrorCode
        self.init(URLError.Code(rawValue: own ?? code ?? error.urlErrorCode) ?? .unknown, userInfo: userInfo)
    }

    /// The value of a constant that Foundation has deprecated; `failureURLString` still reads it.
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

extension URLRequest {
    /// The request for a transfer; `nil` if it has no URL.
    var transferRequest: TransferRequest? {
        guard let url else { return nil }
        let fields = (allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }
        return TransferRequest(
            url.absoluteString, method: Method(rawValue: httpMethod ?? "GET"),
            fields: Fields(fields.map { ($0.key, $0.value) }))
    }

    init?(_ request: TransferRequest) {
        guard let url = URL(string: request.uri) else { return nil }
        self.init(url: url)
        httpMethod = request.method.rawValue
        for field in request.fields { addValue(field.value, forHTTPHeaderField: field.name) }
    }
}

extension FilePath {
    /// Removes the file, if there is one.
    func removeFile() {
        let directory = try? FileDescriptor.open(directory, [.readOnly, .directory])
        try? directory?.unlink(at: lastComponent)
    }
}
