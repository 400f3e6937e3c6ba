import Foundation
import FoundationNetworking

// FoundationNetworking has the methods of this file, except those with `resumeFrom`. Its methods cannot be overridden, and
// their delegates are optional and default to `nil`. For a call without a delegate the compiler selects the methods in
// this file that have no such parameter. For a call with a delegate it selects the methods in this file whose delegate is
// not optional. Only for a call with an optional delegate, or a literal `nil`, it still selects FoundationNetworking's
// methods.

extension URLSession {
    /// Uploads a file.
    /// - Throws: `URLError`. The data to resume the upload is in ``Foundation/URLError/uploadTaskResumeData``.
    public func upload(for request: URLRequest, fromFile fileURL: URL) async throws -> (Data, URLResponse) {
        try await upload(request, .file(fileURL), nil)
    }

    /// Uploads a file, and reports the events of the task to `delegate`.
    /// - Throws: `URLError`, which can contain data to resume the upload.
    public func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: any FoundationNetworking.URLSessionTaskDelegate
    ) async throws -> (Data, URLResponse) {
        try await upload(request, .file(fileURL), delegate)
    }

    /// Uploads bytes in memory.
    /// - Throws: `URLError`, which can contain data to resume the upload.
    public func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse) {
        try await upload(request, .data(bodyData), nil)
    }

    /// Uploads bytes in memory, and reports the events of the task to `delegate`.
    /// - Throws: `URLError`, which can contain data to resume the upload.
    public func upload(
        for request: URLRequest, from bodyData: Data, delegate: any FoundationNetworking.URLSessionTaskDelegate
    ) async throws -> (Data, URLResponse) {
        try await upload(request, .data(bodyData), delegate)
    }

    /// Resumes an upload.
    /// - Throws: `URLError`, which can contain data to resume the upload again.
    public func upload(
        resumeFrom resumeData: Data, delegate: (any FoundationNetworking.URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await AsyncTask<(Data, URLResponse)>.run(delegate: delegate) { resumed in
            resumedUploadTask(resumeData, .inline { resumed.finish($0, $1, $2) })
        }
    }

    /// Downloads to a file. The caller moves or removes the file.
    /// - Throws: `URLError`, which can contain data to resume the download.
    public func download(for request: URLRequest) async throws -> (URL, URLResponse) {
        try await download(request, nil)
    }

    /// Downloads to a file, and reports the events of the task to `delegate`. The caller moves or removes the file.
    /// - Throws: `URLError`, which can contain data to resume the download.
    public func download(
        for request: URLRequest, delegate: any FoundationNetworking.URLSessionTaskDelegate
    ) async throws -> (URL, URLResponse) {
        try await download(request, delegate)
    }

    /// Downloads to a file. The caller moves or removes the file.
    /// - Throws: `URLError`, which can contain data to resume the download.
    public func download(from url: URL) async throws -> (URL, URLResponse) {
        try await download(URLRequest(url: url), nil)
    }

    /// Downloads to a file, and reports the events of the task to `delegate`. The caller moves or removes the file.
    /// - Throws: `URLError`, which can contain data to resume the download.
    public func download(from url: URL, delegate: any FoundationNetworking.URLSessionTaskDelegate) async throws -> (
        URL, URLResponse
    ) {
        try await download(URLRequest(url: url), delegate)
    }

    /// Resumes a download.
    /// - Throws: `URLError`, which can contain data to resume the download again.
    public func download(
        resumeFrom resumeData: Data, delegate: (any FoundationNetworking.URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await AsyncTask<(URL, URLResponse)>.run(delegate: delegate) { resumed in
            guard let session = self as? ResumableURLSession else {
                return downloadTask(withResumeData: resumeData) { resumed.finish($0, $1, $2) }
            }
            return session.makeDownloadTask(resuming: resumeData, .inline { resumed.finish($0, $1, $2) })
        }
    }

    // MARK: Choice of the implementation

    private func upload(
        _ request: URLRequest, _ body: UploadTask.Body, _ delegate: (any AnyTaskDelegate)?
    ) async throws -> (Data, URLResponse) {
        guard let session = self as? ResumableURLSession, session.canTransfer(request) else {
            // The optional delegate selects FoundationNetworking's methods.
            return switch body {
            case .file(let url): try await upload(for: request, fromFile: url, delegate: delegate)
            case .data(let data): try await upload(for: request, from: data, delegate: delegate)
            }
        }
        return try await AsyncTask<(Data, URLResponse)>.run(delegate: delegate) { task in
            session.makeUploadTask(request, body, .inline { task.finish($0, $1, $2) })
        }
    }

    private func download(
        _ request: URLRequest, _ delegate: (any AnyTaskDelegate)?
    ) async throws -> (URL, URLResponse) {
        guard let session = self as? ResumableURLSession, session.canTransferDownload(request) else {
            return try await download(for: request, delegate: delegate)
        }
        return try await AsyncTask<(URL, URLResponse)>.run(delegate: delegate) { task in
            session.makeDownloadTask(request, .inline { task.finish($0, $1, $2) })
        }
    }
}
