import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer

extension TransferTask {
    /// The task's own delegate, else the session's.
    var effectiveDelegate: (any URLSessionTaskDelegate)? {
        core.withLock { $0.delegate } ?? core.session.delegate as? any URLSessionTaskDelegate
    }

    /// Sets the task's own delegate, unless the task has begun.
    func setDelegate(_ delegate: (any URLSessionTaskDelegate)?) {
        core.withLock { state in
            if !state.hasBegun { state.delegate = delegate }
        }
    }

    /// The delegate that receives the events before the end. For a task with a completion handler this is only its own
    /// delegate.
    func listener(hasHandler: Bool) -> (any URLSessionTaskDelegate)? {
        hasHandler ? core.withLock { $0.delegate } : effectiveDelegate
    }

    /// Reports an interim response.
    func notify(_ status: Status, _ fields: Fields, hasHandler: Bool) {
        guard let listener = listener(hasHandler: hasHandler),
            let response = HTTPURLResponse(status: status, fields: fields, url: core.lastURL)
        else { return }
        let session = core.session
        let candidates = hasHandler ? [listener] : [listener, session.delegate as? any URLSessionTaskDelegate]
        let delegates = candidates.compactMap { $0 as? any URLSessionInformationalResponseDelegate }
        guard let delegate = delegates.first else { return }
        core.deliverEvent { delegate.urlSession(session, task: self, didReceiveInformationalResponse: response) }
    }

    /// Reports the end to the delegate, on the delegate queue.
    func notifyCompletion(_ error: URLError?) {
        completed()
        effectiveDelegate?.urlSession(core.session, task: self, didCompleteWithError: error)
        finished()
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
                self.completed()
                handler(content, response, error)
                cleanUp()
                self.finished()
            }
        case .inline(let handler):
            completed()
            finished()
            handler(content, response, error)
        }
    }
}

/// The recipient of a task's result, which is the content of a response or a file.
enum TaskRecipient<Content: Sendable>: Sendable {
    typealias Handler = @Sendable (Content?, URLResponse?, (any Error)?) -> Void

    case delegate
    /// Called on the delegate queue.
    case handler(Handler)
    /// Called immediately, not on the delegate queue.
    case inline(Handler)

    var isHandler: Bool {
        if case .delegate = self { return false }
        return true
    }
}
