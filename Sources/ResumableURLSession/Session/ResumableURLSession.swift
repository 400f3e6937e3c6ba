import Foundation
import FoundationNetworking
import ResumableTransfer

/// A session whose uploads and downloads can be paused and resumed, as with `URLSession` on Apple's platforms.
///
/// It is a subclass of `URLSession`: create this class in place of `URLSession`. Uploads of files and of `Data`, and
/// downloads by GET, over HTTP and HTTPS use ResumableTransfer; everything else (data tasks, streamed uploads, web
/// sockets, other schemes) uses FoundationNetworking as before. If a `URLProtocol` of the configuration handles such an
/// upload or download, it fails, because it could not be resumed.
///
/// On Apple's platforms this is another name of `URLSession`.
public final class ResumableURLSession: URLSession, @unchecked Sendable {
    // These properties are immutable or have their own locks. The superclass protects its own properties.
    let registry = TaskRegistry()
    let settings: TransferSettings
    let client: TransferClient

    /// Creates a session without a delegate.
    public override convenience init(configuration: URLSessionConfiguration) {
        self.init(configuration: configuration, delegate: nil, delegateQueue: nil)
    }

    public override convenience init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        self.init(
            configuration: configuration, delegate: delegate, delegateQueue: queue,
            transfers: TransferSettings.defaultTransfers)
    }

    /// Creates a session with settings for its transfers that Foundation does not have: the version of the upload
    /// protocol, retries, the directory for partial files, a closure that authorizes every request.
    /// - Parameters:
    ///   - configuration: as for any session.
    ///   - delegate: the delegate, which is kept until the session is invalidated.
    ///   - queue: the queue on which the delegate and completion handlers are called; `nil`: a new serial queue.
    ///   - transfers: the settings, to which `configuration` adds its header fields, timeout and proxies.
    public init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?, transfers: TransferClient.Configuration
    ) {
        settings = TransferSettings(configuration, transfers: transfers)
        client = TransferClient(settings.transfers)
        super.init(configuration: configuration, delegate: delegate, delegateQueue: queue)
    }

    private static let sharedSession = ResumableURLSession(configuration: .default)

    /// The shared session without a delegate. It cannot be invalidated.
    public override class var shared: URLSession { sharedSession }

    // MARK: Uploads

    public override func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        guard canTransfer(request) else { return super.uploadTask(with: request, fromFile: fileURL) }
        return makeUploadTask(request, .file(fileURL), .delegate)
    }

    public override func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        guard canTransfer(request) else { return super.uploadTask(with: request, from: bodyData) }
        return makeUploadTask(request, .data(bodyData), .delegate)
    }

    public override func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        guard canTransfer(request) else {
            return super.uploadTask(with: request, fromFile: fileURL, completionHandler: completionHandler)
        }
        return makeUploadTask(request, .file(fileURL), .handler(completionHandler))
    }

    public override func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        // The superclass does not accept `nil`.
        let bodyData = bodyData ?? Data()
        guard canTransfer(request) else {
            return super.uploadTask(with: request, from: bodyData, completionHandler: completionHandler)
        }
        return makeUploadTask(request, .data(bodyData), .handler(completionHandler))
    }

    /// Creates a task that resumes an upload, with another request in place of the original one.
    /// - Parameters:
    ///   - resumeData: the resume data of an upload.
    ///   - request: the new request. Its fields are sent with every later request, so that credentials can be renewed.
    public func uploadTask(withResumeData resumeData: Data, request: URLRequest) -> URLSessionUploadTask {
        makeUploadTask(resuming: resumeData, .delegate, request: request)
    }

    // MARK: Downloads

    public override func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        guard canTransferDownload(request) else { return super.downloadTask(with: request) }
        return makeDownloadTask(request, .delegate)
    }

    public override func downloadTask(with url: URL) -> URLSessionDownloadTask {
        downloadTask(with: URLRequest(url: url))
    }

    public override func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        makeDownloadTask(resuming: resumeData, .delegate)
    }

    public override func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        guard canTransferDownload(request) else {
            return super.downloadTask(with: request, completionHandler: completionHandler)
        }
        return makeDownloadTask(request, .handler(completionHandler))
    }

    public override func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        downloadTask(with: URLRequest(url: url), completionHandler: completionHandler)
    }

    public override func downloadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        makeDownloadTask(resuming: resumeData, .handler(completionHandler))
    }

    /// Creates a task that resumes a download, with another request in place of the original one: with renewed
    /// credentials, or for the same file under another URL.
    public func downloadTask(withResumeData resumeData: Data, request: URLRequest) -> URLSessionDownloadTask {
        makeDownloadTask(resuming: resumeData, .delegate, request: request)
    }

    // MARK: The session's end, and its tasks

    public override func finishTasksAndInvalidate() {
        guard self !== Self.sharedSession else { return }
        registry.close { [client] in
            super.finishTasksAndInvalidate()
            Task { await client.shutDown() }
        }
    }

    public override func invalidateAndCancel() {
        guard self !== Self.sharedSession else { return }
        let isFirst = registry.close { [client] in
            super.invalidateAndCancel()
            Task { await client.shutDown() }
        }
        // After finishTasksAndInvalidate() the session becomes invalid when its last task has ended, so all tasks are
        // canceled.
        if !isFirst { super.getAllTasks { for task in $0 { task.cancel() } } }
        for task in registry.tasks { task.cancel() }
    }

    public override func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) -> Void
    ) {
        let tasks = registry.tasks
        super.getTasksWithCompletionHandler { data, uploads, downloads in
            completionHandler(
                data, uploads + tasks.compactMap { $0 as? URLSessionUploadTask },
                downloads + tasks.compactMap { $0 as? URLSessionDownloadTask })
        }
    }

    public override func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        let tasks = registry.tasks
        super.getAllTasks { completionHandler($0 + tasks) }
    }
}
