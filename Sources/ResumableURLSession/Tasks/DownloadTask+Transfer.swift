import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import SystemCalls

extension DownloadTask {
    func open(_ data: ResumeData?) throws(TransferError) -> TaskRun {
        guard let client = core.transferSession?.client else {
            throw TransferError(.internalFailure, "The session has no client.")
        }
        let download: Download
        if let data {
            download = try client.resumeDownload(
                data, request: core.context?.request, store: nil, handler: exchanges)
            TaskContexts.shared.forget(data)
        } else {
            guard let request = core.context?.request ?? originalRequest?.transferRequest else {
                throw TransferError(.gone, "The download cannot be resumed any more.")
            }
            download = client.download(request, to: .temporary, store: nil, handler: exchanges)
        }
        let core = core
        let directory = client.configuration.storagePath
        return TaskRun(transfer: download) {
            do throws(TransferError) {
                let result = try await download.outcome()
                let response = HTTPURLResponse(status: result.status, fields: result.fields, url: core.lastURL)
                return .success(TaskCompletion(response: response, file: result.file))
            } catch {
                if core.withLock({ $0.hasDeclinedRedirection }), let response = error.response {
                    return TaskCompletion.declinedRedirection(response, url: core.lastURL, in: directory)
                }
                return .failure(error)
            }
        }
    }

    // MARK: Events

    func handle(_ event: TransferEvent) {
        switch event {
        case .informational(let status, let fields): notify(status, fields, hasHandler: recipient.isHandler)
        case .resumed(let offset): handleResumption(offset)
        case .received(let position, let total): handleProgress(position, total)
        case .waiting, .started, .progress, .interrupted, .checkpoint, .completed, .failed: return
        }
    }

    /// Handles a download that continues, from resume data or after an interruption. After an interruption the
    /// delegate is called only if bytes that were reported to it have to be received again.
    private func handleResumption(_ offset: Int64) {
        let (expected, isReported) = core.withLock { state in
            defer {
                state.isAwaitingResumption = false
                state.position = offset
            }
            return (state.total, isResumed && state.isAwaitingResumption || offset < state.position)
        }
        core.progress.update(completed: offset, total: expected < 0 ? nil : expected)
        guard isReported, let delegate = downloadDelegate else { return }
        let session = core.session
        core.deliverEvent {
            delegate.urlSession(session, downloadTask: self, didResumeAtOffset: offset, expectedTotalBytes: expected)
        }
    }

    private func handleProgress(_ position: Int64, _ total: Int64?) {
        // A run that had nothing to resume has started again from the beginning.
        if core.withLock({ !$0.isAwaitingResumption && position < $0.position }) { handleResumption(0) }
        let (count, expected) = core.withLock { state -> (Int64, Int64) in
            if let total { state.total = total }
            let count = state.isAwaitingResumption ? 0 : position - state.position
            state.position = position
            return (count, state.total)
        }
        core.progress.update(completed: position, total: total)
        guard count > 0, let delegate = downloadDelegate else { return }
        let session = core.session
        core.deliverEvent {
            delegate.urlSession(
                session, downloadTask: self, didWriteData: count, totalBytesWritten: position,
                totalBytesExpectedToWrite: expected)
        }
    }

    /// The delegate for bytes and the file: none if there is a completion handler.
    private var downloadDelegate: (any FoundationNetworking.URLSessionDownloadDelegate)? {
        guard !recipient.isHandler else { return nil }
        return core.withLock { $0.delegate } as? any FoundationNetworking.URLSessionDownloadDelegate
            ?? core.session.delegate as? any FoundationNetworking.URLSessionDownloadDelegate
    }

    // MARK: The end

    /// A download reports a server's refusal as an error (Table 1 of Apple's page on `URLSessionDownloadTask`).
    func ending(of error: TransferError) -> (Result<TaskCompletion, URLError>, HTTPURLResponse?) {
        let url = originalRequest?.url
        let response = error.response.flatMap {
            HTTPURLResponse(status: $0.status, fields: $0.fields, url: core.lastURL)
        }
        let code = error.status.flatMap { URLError.downloadCode(forStatus: Int($0.rawValue)) }
        let failure = URLError(error, code: code, url: url, resumeDataKey: NSURLSessionDownloadTaskResumeData)
        return (.failure(failure), response)
    }

    func conclude(_ ending: Result<TaskCompletion, URLError>, response: HTTPURLResponse?) {
        switch ending {
        case .success(let completion):
            core.progress.finish()
            notifySuccess(completion)
        case .failure(let error): notifyEnd(nil, response, error)
        }
    }

    private func notifySuccess(_ completion: TaskCompletion) {
        let file = completion.file
        let url = file?.fileURL
        let session = core.session
        let delegate = downloadDelegate
        switch recipient {
        case .delegate:
            core.deliver {
                if let url { delegate?.urlSession(session, downloadTask: self, didFinishDownloadingTo: url) }
                file?.removeFile()
                self.notifyCompletion(nil)
            }
        case .handler, .inline: notifyEnd(file, completion.response, nil)
        }
    }

    private func notifyEnd(_ file: FilePath?, _ response: HTTPURLResponse?, _ error: URLError?) {
        notifyEnd(recipient, file?.fileURL, response, error) { file?.removeFile() }
    }
}

extension TaskCompletion {
    /// The result of a download whose delegate has not followed a redirection: its content is the file.
    fileprivate static func declinedRedirection(
        _ response: TransferResponse, url: URL?, in directory: FilePath
    ) -> Result<TaskCompletion, TransferError> {
        let file = directory.appending(FilePath("\(UUID().uuidString).redirection"))
        do {
            try FileManager.default.createDirectory(
                at: directory.fileURL, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try Data(response.content).write(to: file.fileURL)
        } catch {
            return .failure(
                TransferError(.storageUnusable, "The content of the response cannot be stored.", underlying: error))
        }
        let head = HTTPURLResponse(status: response.status, fields: response.fields, url: url)
        return .success(TaskCompletion(response: head, file: file))
    }
}
