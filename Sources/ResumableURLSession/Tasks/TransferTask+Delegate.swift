import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer

extension TransferTask {
    /// The task's own delegate, else the session's.
    var effectiveDelegate: (any AnyTaskDelegate)? {
        core.withLock { $0.delegate } ?? core.session.delegate as? any AnyTaskDelegate
    }

    /// Sets the task's own delegate, unless the task has begun.
    func setDelegate(_ delegate: (any AnyTaskDelegate)?) {
        core.withLock { state in
            if !state.hasBegun { state.delegate = delegate }
        }
    }

    /// The delegate that receives the events before the end. For a task with a completion handler this is only its own
    /// delegate.
    func listener(hasHandler: Bool) -> (any AnyTaskDelegate)? {
        hasHandler ? core.withLock { $0.delegate } : effectiveDelegate
    }

    /// Reports an interim response.
    func notify(_ status: Status, _ fields: Fields, hasHandler: Bool) {
        guard let listener = listener(hasHandler: hasHandler),
            let response = HTTPURLResponse(status: status, fields: fields, url: core.lastURL)
        else { return }
        let session = core.session
        let candidates = hasHandler ? [listener] : [listener, session.delegate]
        guard let delegate = candidates.compactMap({ $0 as? any URLSessionTaskDelegate }).first else { return }
        core.deliverEvent { delegate.urlSession(session, task: self, didReceiveInformationalResponse: response) }
    }

    /// The delegate that receives the metrics, including those of a task with a completion handler.
    private var metricsDelegate: (any URLSessionTaskDelegate)? {
        core.withLock { $0.delegate } as? any URLSessionTaskDelegate
            ?? core.session.delegate as? any URLSessionTaskDelegate
    }

    /// Reports the metrics. Called on the delegate queue, immediately before the end is reported.
    private func notifyMetrics() {
        metricsDelegate?.urlSession(core.session, task: self, didFinishCollecting: core.metrics)
    }

    /// Reports the end to the delegate, on the delegate queue.
    func notifyCompletion(_ error: URLError?) {
        willReportEnd()
        notifyMetrics()
        effectiveDelegate?.urlSession(core.session, task: self, didCompleteWithError: error)
        didReportEnd()
    }

    /// Reports the end to the recipient.
    /// - Parameter cleanUp: called after a handler on the delegate queue has returned.
    func notifyEnd<Content: Sendable>(
        _ recipient: TaskRecipient<Content>, _ content: Content?, _ response: HTTPURLResponse?, _ error: URLError?,
        cleanUp: @escaping @Sendable () -> Void = {}
    ) {
        switch recipient {
        case .delegate: core.deliver { self.notifyCompletion(error) }
        case .handler(let handler):
            core.deliver {
                self.willReportEnd()
                self.notifyMetrics()
                handler(content, response, error)
                cleanUp()
                self.didReportEnd()
            }
        case .inline(let handler):
            let end: @Sendable () -> Void = {
                self.willReportEnd()
                self.notifyMetrics()
                self.didReportEnd()
                handler(content, response, error)
            }
            if metricsDelegate == nil { end() } else { core.deliver(end) }
        }
    }
}

/// The recipient of a task's result, which is the content of a response or a file.
enum TaskRecipient<Content: Sendable>: Sendable {
    typealias Handler = @Sendable (Content?, URLResponse?, (any Error)?) -> Void

    case delegate
    /// Called on the delegate queue.
    case handler(Handler)
    /// Called immediately if there is no delegate for the metrics, else on the delegate queue after the metrics.
    case inline(Handler)

    var isHandler: Bool {
        if case .delegate = self { return false }
        return true
    }
}
