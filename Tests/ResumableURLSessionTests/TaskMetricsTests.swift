import Foundation
import FoundationNetworking
import ResumableTransfer
import Testing

@testable import ResumableURLSession

@Suite("Metrics of a task")
struct TaskMetricsTests {
    private final class Response: HTTPURLResponse, @unchecked Sendable {}

    private func sample(_ change: (inout RequestMetrics) -> Void = { _ in }) -> RequestMetrics {
        var metrics = RequestMetrics(method: .get, duration: .milliseconds(90))
        metrics.startedAt = Date(timeIntervalSince1970: 1000)
        metrics.requestStart = .milliseconds(40)
        metrics.requestEnd = .milliseconds(50)
        metrics.responseStart = .milliseconds(60)
        metrics.httpVersion = "HTTP/1.1"
        metrics.sent = 5
        metrics.received = 7
        change(&metrics)
        return metrics
    }

    private func milliseconds(_ date: Date?) -> Int? {
        date.map { Int((($0.timeIntervalSince1970 - 1000) * 1000).rounded()) }
    }

    @Test("FoundationNetworking's classes have the properties that this library knows, and its objects are released")
    func layout() throws {
        let url = try #require(URL(string: "http://example.com/a/long/path/that/is/not/stored/inline"))
        weak var released: HTTPURLResponse?
        weak var releasedMetrics: URLSessionTaskMetrics?
        do {
            let response = try #require(
                Response(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: nil))
            released = response
            let transaction = try #require(
                URLSessionTaskTransactionMetrics.of(sample(), request: URLRequest(url: url), response: response))
            let interval = DateInterval(start: Date(timeIntervalSince1970: 5), duration: 3)
            let metrics = URLSessionTaskMetrics.of([transaction], during: interval, redirectCount: 4)
            releasedMetrics = metrics
            #expect(metrics.transactionMetrics.first === transaction && metrics.transactionMetrics.count == 1)
            #expect(metrics.taskInterval == interval && metrics.redirectCount == 4)
            #expect(transaction.request.url == url && transaction.response === response)
            #expect(transaction.resourceFetchType == .networkLoad && !transaction.isReusedConnection)
            #expect(transaction.countOfRequestBodyBytesSent == 5 && transaction.countOfResponseBodyBytesReceived == 7)
            #expect(transaction.networkProtocolName == "http/1.1" && transaction.remoteAddress == nil)
            #expect(transaction.domainResolutionProtocol == .unknown && !transaction.isMultipath)
            #expect(transaction.negotiatedTLSCipherSuite == nil)
        }
        #expect(released == nil && releasedMetrics == nil)
    }

    @Test("the times of a new connection with TLS are those that libcurl has measured")
    func times() throws {
        let url = try #require(URL(string: "https://example.com"))
        let metrics = sample {
            $0.nameLookup = .milliseconds(10)
            $0.connect = .milliseconds(20)
            $0.secureConnect = .milliseconds(30)
            $0.httpVersion = "HTTP/2"
        }
        let transaction = try #require(
            URLSessionTaskTransactionMetrics.of(metrics, request: URLRequest(url: url), response: nil))
        let dates = [
            transaction.fetchStartDate, transaction.domainLookupStartDate, transaction.domainLookupEndDate,
            transaction.connectStartDate, transaction.secureConnectionStartDate, transaction.secureConnectionEndDate,
            transaction.connectEndDate, transaction.requestStartDate, transaction.requestEndDate,
            transaction.responseStartDate, transaction.responseEndDate,
        ]
        #expect(dates.map { milliseconds($0) } == [0, 0, 10, 10, 20, 30, 30, 40, 50, 60, 90])
        #expect(transaction.networkProtocolName == "h2")
    }

    @Test("a reused connection has no times of its own, and a request without a response has no end of a response")
    func reused() throws {
        let url = try #require(URL(string: "http://example.com"))
        let metrics = sample {
            $0.isConnectionReused = true
            $0.responseStart = nil
        }
        let transaction = try #require(
            URLSessionTaskTransactionMetrics.of(metrics, request: URLRequest(url: url), response: nil))
        #expect(transaction.isReusedConnection && transaction.domainLookupStartDate == nil)
        #expect(transaction.connectStartDate == nil && transaction.connectEndDate == nil)
        #expect(transaction.secureConnectionStartDate == nil && transaction.responseEndDate == nil)
    }

    @Test("an object with other properties is not converted")
    func otherLayout() {
        final class Other: NSObject {
            var transactionMetrics: [URLSessionTaskTransactionMetrics] = []
            var redirectCount = 0
            var taskInterval = DateInterval()
        }
        #expect(SameLayout.convert(Other(), to: URLSessionTaskMetrics.self) == nil)
    }
}
