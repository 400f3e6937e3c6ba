import ConformanceKit
import Foundation
import ResumableURLSession
import SystemCalls
import TestSupport

/// A delegate that answers redirections and challenges with the closures of a test, and records the calls.
final class SessionExchangeDelegate: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate {
    typealias Answer = (URLSession.AuthChallengeDisposition, URLCredential?)

    struct Redirection: Sendable {
        var status: Int
        var from: URL?
        var request: URLRequest
    }

    private struct State: Sendable {
        var calls: [String] = []
        var redirections: [Redirection] = []
        var challenges: [URLAuthenticationChallenge] = []
        var file: [UInt8]?
        var content: [UInt8] = []
        var endings: [URLError?] = []
        var metrics: [URLSessionTaskMetrics] = []
    }

    private let state = Monitor(State())
    private let redirect: @Sendable (URLRequest) -> URLRequest?
    private let authenticate: @Sendable (URLAuthenticationChallenge) -> Answer

    init(
        redirect: @escaping @Sendable (URLRequest) -> URLRequest? = { $0 },
        authenticate: @escaping @Sendable (URLAuthenticationChallenge) -> Answer = { _ in (.performDefaultHandling, nil)
        }
    ) {
        self.redirect = redirect
        self.authenticate = authenticate
    }

    var calls: [String] { state.withLock { $0.calls } }
    var redirections: [Redirection] { state.withLock { $0.redirections } }
    var challenges: [URLAuthenticationChallenge] { state.withLock { $0.challenges } }
    var file: [UInt8]? { state.withLock { $0.file } }
    var content: [UInt8] { state.withLock { $0.content } }
    /// The metrics of the tasks that have ended.
    var metrics: [URLSessionTaskMetrics] { state.withLock { $0.metrics } }

    /// Waits until the task has ended, and returns its error.
    func ending() throws -> URLError? {
        guard let ending = state.wait(until: Deadline(in: .seconds(60)).nanoseconds, { $0.endings.first }) else {
            throw TestFailure("the task does not end")
        }
        return ending
    }

    private func note(_ change: @Sendable (inout State) -> Void) {
        state.withLock { change(&$0) }
        state.notifyAll()
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        note {
            $0.calls.append("redirection")
            $0.redirections.append(
                Redirection(status: response.statusCode, from: response.url, request: request))
        }
        completionHandler(redirect(request))
        // A second call has no effect.
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note { $0.calls.append("session challenge") }
        completionHandler(.performDefaultHandling, nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        note {
            $0.calls.append("challenge")
            $0.challenges.append(challenge)
        }
        let (disposition, credential) = authenticate(challenge)
        completionHandler(disposition, credential)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        note {
            $0.calls.append("metrics")
            $0.metrics.append(metrics)
        }
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let bytes = FileManager.default.contents(atPath: location.path).map { [UInt8]($0) }
        note {
            $0.calls.append("file")
            $0.file = bytes
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note { $0.content += [UInt8](data) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note {
            $0.calls.append("end")
            $0.endings.append(error as? URLError)
        }
    }
}
