import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import ResumableUpload
import SystemCalls

/// Participates in the exchanges of a task: it handles cookies, redirections and challenges as `URLSession` does, and
/// collects metrics.
///
/// The transfer of a run owns it, so it is released with the run.
final class TaskExchanges: ExchangeHandler {
    let task: any TransferTask
    var connection: ConnectionSettings? { task.core.connection }
    let cookies: CookieRules
    let credentials: TaskCredentials
    /// The request that was prepared last, and its response.
    private let exchange = Monitor<(request: URLRequest?, response: HTTPURLResponse?)>((nil, nil))

    init(_ task: any TransferTask, _ storages: SessionStorages) {
        self.task = task
        cookies = CookieRules(storages, request: task.core.originalRequest)
        credentials = task.core.credentials
    }

    func prepare(_ request: inout TransferRequest, for step: ClientRequest) {
        guard let url = URL(string: request.uri) else { return }
        task.core.noteRequest(url, of: step)
        task.core.withLock { $0.redirection }?.change(&request, to: url)
        credentials.authorize(&request, to: url)
        if let field = cookies.field(for: url) { request.fields.set("Cookie", field) }
        let prepared = URLRequest(request)
        exchange.withLock { $0 = (prepared, nil) }
    }

    func received(_ response: TransferResponse, to request: TransferRequest) {
        guard let url = URL(string: request.uri) else { return }
        cookies.store(response.fields, from: url)
        credentials.received(response, to: url)
        let response = HTTPURLResponse(status: response.status, fields: response.fields, url: url)
        exchange.withLock { $0.response = response }
    }

    func ended(_ metrics: RequestMetrics) {
        let (request, response) = exchange.withLock { $0 }
        guard let request else { return }
        task.core.note(URLSessionTaskTransactionMetrics(metrics, request: request, response: response))
    }

    /// Calls a method of the task's delegate on the delegate queue, and waits until the delegate has called the
    /// completion handler.
    /// - Returns: `nil` if there is no delegate, or if the wait was canceled.
    func ask<Answer: Sendable>(
        _ body: @escaping @Sendable (any AnyTaskDelegate, @escaping @Sendable (Answer) -> Void) -> Void
    ) async -> Answer? {
        guard let delegate = task.effectiveDelegate else { return nil }
        // Only the first call of the completion handler counts.
        let (answers, continuation) = AsyncStream.makeStream(of: Answer.self, bufferingPolicy: .bufferingOldest(1))
        task.core.deliver {
            body(delegate) {
                continuation.yield($0)
                continuation.finish()
            }
        }
        for await answer in answers { return answer }
        return nil
    }
}
