import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import Testing

@Suite("Session: metrics", .blocking)
struct SessionMetricsTests {
    private let bytes = Payload.bytes(300_000)

    @Test("a task has the metrics of all its requests, and the delegate does not receive empty ones")
    func download() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { request, reply in
            if request.target == "/first" { return try reply.respond(302, ["Location": "/second"]) }
            try file.serve(request, reply)
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate()
        let task = fixture.session(delegate).downloadTask(with: try SessionFixture.request(server.url + "/first"))
        #expect(task.requestMetrics.isEmpty)
        task.resume()
        #expect(try delegate.ending() == nil)
        #expect(delegate.calls == ["redirection", "file", "end"])
        let metrics = task.requestMetrics
        #expect(metrics.map(\.uri) == [server.url + "/first", server.url + "/second"])
        #expect(metrics.map(\.status) == [302, 200] && metrics.map(\.isConnectionReused) == [false, true])
        #expect(metrics.map { $0.nameLookup == nil } == [false, true] && metrics.last?.received == 300_000)
    }

    @Test("an upload that fails has metrics, too, and a task of FoundationNetworking has none")
    func upload() async throws {
        let server = try ScriptedServer { _, reply in reply.reset() }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate()
        let session = fixture.session(delegate) { $0.retry.maximumRetriesWithoutProgress = 0 }
        let request = try SessionFixture.request(server.url + "/reset", "POST")
        let task = session.uploadTask(with: request, from: Data(bytes))
        task.resume()
        #expect(try delegate.ending()?.code == .networkConnectionLost)
        let failed = try #require(task.requestMetrics.first)
        #expect(failed.status == nil && failed.responseStart == nil && failed.connect != nil)
        #expect(session.dataTask(with: request).requestMetrics.isEmpty)
    }

    @Test("requests with different timeouts share the connections of the session")
    func timeouts() async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { request, reply in try file.serve(request, reply) }
        let fixture = try SessionFixture()
        let session = fixture.session()
        for (timeout, isReused) in [(30, false), (40, true), (0, true)] {
            var request = try SessionFixture.request(server.url + "/a")
            request.timeoutInterval = TimeInterval(timeout)
            let answer = SessionAnswer<URL>()
            let task = session.downloadTask(with: request, completionHandler: answer.handler)
            task.resume()
            #expect(try answer.value().status == 200)
            #expect(task.requestMetrics.map(\.isConnectionReused) == [isReused])
        }
    }
}
