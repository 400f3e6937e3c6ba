import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableURLSession
import SystemCalls
import Testing

@Suite("Session: metrics", .blocking)
struct SessionMetricsTests {
    private let bytes = Payload.bytes(300_000)

    @Test("the delegate receives the metrics of all requests before the end of the task")
    func download() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { request, reply in
            if request.target == "/first" { return try reply.respond(302, ["Location": "/second"]) }
            try file.serve(request, reply)
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate()
        let begin = Date()
        let task = fixture.session(delegate).downloadTask(with: try SessionFixture.request(server.url + "/first"))
        task.resume()
        #expect(try delegate.ending() == nil)
        #expect(delegate.calls == ["redirection", "file", "metrics", "end"])
        let metrics = try #require(delegate.metrics.first)
        #expect(metrics.redirectCount == 1 && metrics.transactionMetrics.count == 2)
        #expect(metrics.taskInterval.start >= begin && metrics.taskInterval.end <= Date())
        for (index, transaction) in metrics.transactionMetrics.enumerated() {
            #expect(transaction.request.url?.path == ["/first", "/second"][index])
            #expect((transaction.response as? HTTPURLResponse)?.statusCode == [302, 200][index])
            #expect(transaction.isReusedConnection == (index == 1) && transaction.networkProtocolName == "http/1.1")
            let dates = [
                transaction.fetchStartDate, transaction.domainLookupStartDate, transaction.domainLookupEndDate,
                transaction.connectStartDate, transaction.connectEndDate, transaction.requestStartDate,
                transaction.requestEndDate, transaction.responseStartDate, transaction.responseEndDate,
            ].compactMap { $0 }
            #expect(dates.count == (index == 0 ? 9 : 5) && dates == dates.sorted())
        }
        #expect(metrics.transactionMetrics.last?.countOfResponseBodyBytesReceived == 300_000)
    }

    @Test("an upload that fails, and one with a completion handler, have metrics too")
    func upload() async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            if request.target == "/reset" { return reply.reset() }
            try model.serve(request, reply)
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate()
        let session = fixture.session(delegate) { $0.retry.triesWithoutProgress = 0 }
        session.uploadTask(with: try SessionFixture.request(server.url + "/reset", "POST"), from: Data(bytes)).resume()
        #expect(try delegate.ending()?.code == .networkConnectionLost)
        #expect(delegate.calls == ["metrics", "end"])
        let failed = try #require(delegate.metrics.first?.transactionMetrics.first)
        #expect(failed.response == nil && failed.responseStartDate == nil && failed.connectEndDate != nil)
        let answer = SessionAnswer<Data>()
        session.uploadTask(
            with: try SessionFixture.request(server.url + "/a", "POST"), from: Data(bytes),
            completionHandler: answer.handler
        ).resume()
        #expect(try answer.value().status == 200)
        #expect(delegate.metrics.last?.transactionMetrics.first?.countOfRequestBodyBytesSent == 300_000)
        _ = try await session.upload(
            for: try SessionFixture.request(server.url + "/b", "POST"), from: Data(bytes))
        #expect(eventually { delegate.metrics.count == 3 })
    }
}
