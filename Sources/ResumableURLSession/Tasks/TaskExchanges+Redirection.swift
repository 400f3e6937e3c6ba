import HTTPTransport
import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer

extension TaskExchanges {
    func redirected(
        by response: TransferResponse, to proposed: TransferRequest
    ) async -> RedirectionDecision {
        let decision = await decision(about: response, proposed)
        if decision != .decline { task.core.withLock { $0.redirectCount += 1 } }
        return decision
    }

    private func decision(
        about response: TransferResponse, _ proposed: TransferRequest
    ) async -> RedirectionDecision {
        let core = task.core
        guard let request = core.request(redirectedTo: proposed),
            let redirection = HTTPURLResponse(
                status: response.status, fields: response.fields, url: core.lastURL)
        else { return .follow }
        let session = core.session
        let task = task
        let answer: URLRequest?? = await ask { delegate, answer in
            delegate.urlSession(
                session, task: task, willPerformHTTPRedirection: redirection, newRequest: request,
                completionHandler: answer)
        }
        guard let answer else { return .follow }
        guard let changed = answer, let url = changed.url else {
            core.withLock { $0.hasDeclinedRedirection = true }
            return .decline
        }
        core.withLock { $0.redirection = RedirectionChange(from: request, to: changed) }
        // The answer of a delegate without the method is the same request.
        let isChanged = url != request.url || changed.allHTTPHeaderFields != request.allHTTPHeaderFields
        return isChanged ? .redirect(to: url.absoluteString) : .follow
    }
}

extension TaskCore {
    /// The request for the delegate.
    fileprivate func request(redirectedTo proposed: TransferRequest) -> URLRequest? {
        guard let url = URL(string: proposed.uri), var request = originalRequest else { return nil }
        request.url = url
        request.httpMethod = proposed.method.rawValue
        request.allHTTPHeaderFields = [:]
        for field in proposed.fields { request.addValue(field.value, forHTTPHeaderField: field.name) }
        return request
    }
}

/// The changes of a delegate to the request that follows a redirection. They apply to all requests to the same origin.
struct RedirectionChange: Sendable {
    /// The request as the delegate returned it.
    let request: URLRequest
    private let set: [String: String]
    private let removed: [String]

    init(from proposed: URLRequest, to request: URLRequest) {
        self.request = request
        let before = proposed.allHTTPHeaderFields ?? [:]
        let after = request.allHTTPHeaderFields ?? [:]
        set = after.filter { before[$0.key] != $0.value }
        removed = before.keys.filter { after[$0] == nil }
    }

    func change(_ outgoing: inout TransferRequest, to url: URL) {
        guard let target = request.url.flatMap({ RequestURI($0) }), RequestURI(url)?.hasSameOrigin(as: target) == true
        else { return }
        for name in removed { outgoing.fields.remove(name) }
        for (name, value) in set.sorted(by: { $0.key < $1.key }) { outgoing.fields.set(name, value) }
    }
}
