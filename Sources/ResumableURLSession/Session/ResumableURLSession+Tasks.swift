import Foundation
import FoundationNetworking
import ResumableTransfer

extension ResumableURLSession {
    // MARK: Requests for transfers

    /// Whether this request can be a transfer: its scheme is http or https.
    func canTransfer(_ request: URLRequest) -> Bool {
        let scheme = request.url?.scheme?.lowercased()
        return scheme == "http" || scheme == "https"
    }

    /// The error of a transfer that a protocol class of the application handles; `nil` if there is no such class.
    private func protocolRefusal(of request: URLRequest?) -> TransferError? {
        guard let request else { return nil }
        let own: AnyClass? = (configuration.protocolClasses ?? []).first { type in
            !String(reflecting: type).hasPrefix("FoundationNetworking.")
                && (type as? URLProtocol.Type)?.canInit(with: request) == true
        }
        guard let own else { return nil }
        return TransferError(
            .invalidRequest,
            "The protocol class \(String(describing: own)) handles this request, so its transfer could not be resumed. "
                + "Remove the class from protocolClasses of the configuration, or use a plain URLSession for this request.",
            underlying: TaskFailure.protocolClass)
    }

    /// Whether a download of this request can be a transfer: a GET without content for the complete representation.
    func canTransferDownload(_ request: URLRequest) -> Bool {
        canTransfer(request) && (request.httpMethod ?? "GET") == "GET" && request.httpBody == nil
            && request.httpBodyStream == nil && request.value(forHTTPHeaderField: "Range") == nil
            && request.value(forHTTPHeaderField: "If-Range") == nil
    }

    // MARK: New tasks

    func makeUploadTask(
        _ request: URLRequest, _ body: UploadTask.Body, _ recipient: UploadTask.Recipient
    ) -> URLSessionUploadTask {
        var context = request.transferRequest.map { TaskContext(request: $0, original: request) }
        if case .data(let data) = body { context?.content = data }
        let task = UploadTask(makeCore(request, context), body: body, recipient: recipient)
        registry.add(task)
        return task
    }

    func makeUploadTask(
        resuming data: Data, _ recipient: UploadTask.Recipient, request: URLRequest? = nil
    ) -> URLSessionUploadTask {
        let resumption = Resumption(data, kind: .upload, request: request)
        let task = UploadTask(makeCore(resumption), body: nil, recipient: recipient)
        registry.add(task)
        return task
    }

    func makeDownloadTask(_ request: URLRequest, _ recipient: DownloadTask.Recipient) -> URLSessionDownloadTask {
        let context = request.transferRequest.map { TaskContext(request: $0, original: request) }
        let task = DownloadTask(makeCore(request, context), isResumed: false, recipient: recipient)
        registry.add(task)
        return task
    }

    func makeDownloadTask(
        resuming data: Data, _ recipient: DownloadTask.Recipient, request: URLRequest? = nil
    ) -> URLSessionDownloadTask {
        let resumption = Resumption(data, kind: .download, request: request)
        let task = DownloadTask(makeCore(resumption), isResumed: true, recipient: recipient)
        registry.add(task)
        return task
    }

    private func makeCore(_ request: URLRequest, _ context: TaskContext?) -> TaskCore {
        TaskCore(
            identifier: registry.makeIdentifier(), session: self, request: request, context: context,
            refusal: invalidation ?? protocolRefusal(of: request), credentials: settings.storages.credentials,
            connection: settings.connection(for: request))
    }

    private func makeCore(_ resumption: Resumption) -> TaskCore {
        TaskCore(
            identifier: registry.makeIdentifier(), session: self, request: resumption.request, data: resumption.data,
            context: resumption.context,
            refusal: invalidation ?? resumption.refusal ?? protocolRefusal(of: resumption.request),
            credentials: settings.storages.credentials, connection: settings.connection(for: resumption.request))
    }

    private var invalidation: TransferError? {
        registry.isClosed ? TransferError(.shutDown, "The session was invalidated.") : nil
    }
}

/// The content of resume data that can be read before it is used.
private struct Resumption {
    var data: ResumeData?
    var request: URLRequest?
    var context: TaskContext?
    var refusal: TransferError?

    init(_ bytes: Data, kind: ResumeData.Kind, request given: URLRequest?) {
        do throws(TransferError) {
            let data = try ResumeData(bytes)
            guard data.kind == kind else {
                throw TransferError(.resumeDataInvalid, "The resume data belongs to another kind of task.")
            }
            // A task delivers its file and then removes it, so it must be a file of the session.
            guard kind == .upload || data.path == nil else {
                throw TransferError(
                    .resumeDataInvalid, "The resume data belongs to a download to a path, which a task cannot resume.")
            }
            self.data = data
            context = TaskContexts.shared.context(of: data)
            if let given, let request = given.transferRequest {
                context = TaskContext(request: request, content: context?.content, original: given)
            }
            request = given ?? context?.original ?? URLRequest(context?.request ?? data.request)
        } catch {
            refusal = error
        }
    }
}
