import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import SystemCalls

extension UploadTask {
    func open(_ data: ResumeData?) throws(TransferError) -> TaskRun {
        guard let client = core.transferSession?.client else {
            throw TransferError(.internalFailure, "The session has no client.")
        }
        let upload: Upload
        if let data {
            let source = core.context?.content.map { DataSource($0) }
            upload = try client.resumeUpload(
                data, from: source, request: core.context?.request, store: nil, handler: exchanges)
            TaskContexts.shared.forget(data)
        } else {
            guard let request = core.context?.request, let body else {
                throw TransferError(.gone, "The upload cannot be resumed any more.")
            }
            switch body {
            case .file(let url):
                upload = client.upload(request, from: try FileSource(url: url), store: nil, handler: exchanges)
            case .data(let data):
                upload = client.upload(request, from: DataSource(data), store: nil, handler: exchanges)
            }
        }
        let core = core
        return TaskRun(transfer: upload) {
            do throws(TransferError) {
                let result = try await upload.outcome()
                // Without a status the response was lost. The upload is complete, so 204 is reported.
                let response = HTTPURLResponse(
                    status: result.status ?? Status(rawValue: 204), fields: result.fields, url: core.lastURL)
                return .success(TaskCompletion(response: response, content: Data(result.content)))
            } catch {
                return .failure(error)
            }
        }
    }

    // MARK: Events

    func handle(_ event: TransferEvent) {
        switch event {
        case .started(let total):
            core.withLock { $0.total = total ?? NSURLSessionTransferSizeUnknown }
            core.progress.update(completed: core.progress.completedUnitCount, total: total)
        case .informational(let status, let fields): notify(status, fields, hasHandler: recipient.isHandler)
        case .resumed(let offset):
            core.withLock { state in
                // Bytes that have to be sent again are not reported again.
                if state.isAwaitingResumption { state.position = max(state.position, offset) }
                state.isAwaitingResumption = false
            }
        case .progress(let sent, let acknowledged, let total): handleProgress(sent, acknowledged, total)
        case .waiting, .received, .interrupted, .checkpoint, .completed, .failed: return
        }
    }

    private func handleProgress(_ sent: Int64, _ acknowledged: Int64, _ total: Int64?) {
        let (count, expected) = core.withLock { state -> (Int64, Int64) in
            if let total { state.total = total }
            // Before the first request of a resumed upload the server has not reported its offset.
            guard !state.isAwaitingResumption || sent > state.position else { return (0, state.total) }
            let count = state.isAwaitingResumption ? 0 : sent - state.position
            state.position = max(state.position, sent)
            return (count, state.total)
        }
        // The progress counts acknowledged bytes, and sent bytes except the last 4 MiB, which may still be lost.
        core.progress.advance(to: max(acknowledged, sent - (4 << 20)), total: total)
        guard count > 0, let listener = listener(hasHandler: recipient.isHandler) else { return }
        let session = core.session
        core.deliverEvent {
            listener.urlSession(
                session, task: self, didSendBodyData: count, totalBytesSent: sent, totalBytesExpectedToSend: expected)
        }
    }

    // MARK: The end

    /// A response of the server is no error of an upload, whatever its status is, unless the upload can still be
    /// resumed.
    func ending(of error: TransferError) -> (Result<TaskCompletion, URLError>, HTTPURLResponse?) {
        let url = originalRequest?.url
        let response = error.response.flatMap {
            HTTPURLResponse(status: $0.status, fields: $0.fields, url: core.lastURL)
        }
        let answers: [TransferError.Code] = [
            .refused, .preconditionFailed, .unauthorized, .tooLarge, .serverUnavailable, .digestMismatch,
        ]
        let isAnswer = answers.contains(error.code)
        if isAnswer, error.resumeData == nil, let response {
            let content = Data(error.response?.content ?? [])
            return (.success(TaskCompletion(response: response, content: content)), response)
        }
        let failure = URLError(error, url: url, resumeDataKey: NSURLSessionUploadTaskResumeData)
        return (.failure(failure), response)
    }

    func conclude(_ ending: Result<TaskCompletion, URLError>, response: HTTPURLResponse?) {
        switch ending {
        case .success(let completion):
            core.withLock { $0.answered = Int64(completion.content.count) }
            core.progress.finish()
            notifySuccess(completion)
        case .failure(let error):
            notifyEnd(nil, response, error)
        }
    }

    private func notifySuccess(_ completion: TaskCompletion) {
        guard case .delegate = recipient, let response = completion.response,
            let delegate = effectiveDelegate as? any FoundationNetworking.URLSessionDataDelegate
        else { return notifyEnd(completion.content, completion.response, nil) }
        let session = core.session
        let isDecided = Monitor(false)
        core.deliver {
            delegate.urlSession(session, dataTask: self, didReceive: response) { disposition in
                let isFirst = isDecided.withLock { isDecided in
                    defer { isDecided = true }
                    return !isDecided
                }
                guard isFirst else { return }
                guard disposition != .cancel else {
                    let canceled = TransferError(.cancelled, "The delegate rejected the response.")
                    let url = self.originalRequest?.url
                    let error = URLError(canceled, url: url, resumeDataKey: NSURLSessionUploadTaskResumeData)
                    self.core.withLock { $0.error = error }
                    return self.notifyEnd(nil, response, error)
                }
                self.core.deliver {
                    if !completion.content.isEmpty {
                        delegate.urlSession(session, dataTask: self, didReceive: completion.content)
                    }
                    self.notifyCompletion(nil)
                }
            }
        }
    }

    private func notifyEnd(_ content: Data?, _ response: HTTPURLResponse?, _ error: URLError?) {
        notifyEnd(recipient, content, response, error)
    }
}
