import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

@Suite("Session: metrics", .blocking)
struct SessionMetricsTests {
    private let bytes = Payload.bytes(300_000)

    @Test("the delegate receives one transaction for each request before the end, with and without a handler")
    func download() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { request, reply in
            if request.target == "/first" { return try reply.respond(302, ["Location": "/second"]) }
            try file.serve(request, reply)
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate()
        let session = fixture.session(delegate)
        let before = Date()
        let task = session.downloadTask(with: try SessionFixture.request(server.url + "/first", "GET", ["X-A": "1"]))
        task.resume()
        #expect(try delegate.ending() == nil)
        #expect(delegate.calls == ["redirection", "file", "metrics", "end"])
        let metrics = try #require(delegate.metrics.first)
        #expect(metrics.redirectCount == 1 && metrics.transactionMetrics.count == 2)
        #expect(metrics.taskInterval.start >= before && metrics.taskInterval.end <= Date())
        let (first, second) = (metrics.transactionMetrics[0], metrics.transactionMetrics[1])
        #expect(first.request.url?.path == "/first" && first.request.value(forHTTPHeaderField: "X-A") == "1")
        #expect((first.response as? HTTPURLResponse)?.statusCode == 302)
        #expect((second.response as? HTTPURLResponse)?.statusCode == 200 && second.request.url?.path == "/second")
        #expect(!first.isReusedConnection && second.isReusedConnection && !first.isProxyConnection)
        #expect(second.domainLookupStartDate == nil && second.connectStartDate == nil && second.connectEndDate == nil)
        #expect(first.networkProtocolName == "http/1.1" && first.resourceFetchType == .networkLoad)
        #expect(first.countOfResponseHeaderBytesReceived > 30 && first.countOfRequestHeaderBytesSent > 30)
        #expect(second.countOfResponseBodyBytesReceived == 300_000 && second.countOfRequestBodyBytesSent == 0)
        #expect(first.remoteAddress == "127.0.0.1" && first.remotePort == first.request.url?.port)
        #expect(first.localAddress == "127.0.0.1" && first.localPort == second.localPort && first.localPort != 0)
        #expect(first.secureConnectionStartDate == nil && first.secureConnectionEndDate == nil)
        let times = [
            first.fetchStartDate, first.domainLookupStartDate, first.domainLookupEndDate, first.connectStartDate,
            first.connectEndDate, first.requestStartDate, first.requestEndDate, first.responseStartDate,
            first.responseEndDate,
        ].compactMap { $0 }
        #expect(times.count == 9 && times == times.sorted() && times[0] >= before)

        let answer = SessionAnswer<URL>()
        let request = try SessionFixture.request(server.url + "/second")
        session.downloadTask(with: request, completionHandler: answer.handler).resume()
        #expect(try answer.value().status == 200)
        #expect(delegate.metrics.map(\.transactionMetrics.count) == [2, 1])
        let own = SessionExchangeDelegate()
        let (location, _) = try await session.download(for: request, delegate: own)
        try FileManager.default.removeItem(at: location)
        #expect(own.calls == ["metrics"] && delegate.metrics.count == 2)
    }

    @Test("each repetition of a request of an upload is a transaction, even if there is no response")
    func upload() async throws {
        let server = try ScriptedServer { _, reply in reply.reset() }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate()
        let session = fixture.session(delegate) { $0.retry.maxRetriesWithoutProgress = 0 }
        session.uploadTask(with: try SessionFixture.request(server.url + "/reset", "POST"), from: Data(bytes)).resume()
        #expect(try delegate.ending()?.code == .networkConnectionLost)
        #expect(delegate.calls == ["metrics", "end"])
        let failed = try #require(delegate.metrics.first?.transactionMetrics.first)
        #expect(failed.response == nil && failed.responseStartDate == nil && failed.responseEndDate == nil)
        #expect(failed.connectEndDate != nil && failed.request.httpMethod == "POST")
    }

    @Test("all requests of a resumed upload are transactions, with the interruption before them")
    func resumption() async throws {
        let model = ScriptedUpload()
        let requests = Counter()
        let server = try ScriptedServer { request, reply in
            let number = requests.next()
            if number == 2 {
                while try !reply.readContent(atMost: 64 << 10).isEmpty {}
                return try reply.respond(503)
            }
            try model.serve(request, reply)
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate()
        let session = fixture.session(delegate) { $0.creation = .careful }
        session.uploadTask(with: try SessionFixture.request(server.url + "/a", "POST"), from: Data(bytes)).resume()
        #expect(try delegate.ending() == nil)
        let transactions = try #require(delegate.metrics.first?.transactionMetrics)
        #expect(transactions.count == server.requests.count && transactions.count >= 3)
        #expect(transactions.map { $0.request.httpMethod } == server.requests.map { Optional($0.method) })
        #expect((transactions[1].response as? HTTPURLResponse)?.statusCode == 503)
        #expect(transactions.map(\.countOfRequestBodyBytesSent).reduce(0, +) >= 300_000)
    }

    @Test("requests with different timeouts share the connections of the session")
    func timeouts() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { request, reply in try file.serve(request, reply) }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate()
        let session = fixture.session(delegate)
        for timeout in [30, 40, 0] {
            var request = try SessionFixture.request(server.url + "/a")
            request.timeoutInterval = TimeInterval(timeout)
            let answer = SessionAnswer<URL>()
            session.downloadTask(with: request, completionHandler: answer.handler).resume()
            #expect(try answer.value().status == 200)
        }
        #expect(delegate.metrics.flatMap(\.transactionMetrics).map(\.isReusedConnection) == [false, true, true])
    }
}
