import ConformanceKit
import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

@Suite("Session: redirections", .blocking)
struct SessionRedirectionTests {
    private let bytes = Payload.bytes(300_000)

    private func field(_ request: ReceivedRequest?, _ name: String) -> String? {
        request?.fields[name]?.trimmingCharacters(in: .whitespaces)
    }

    @Test(
        "the delegate sees each redirection of a download, and the last URL is that of the task",
        arguments: [301, 302, 303, 307, 308])
    func download(status: Int) async throws {
        let file = ScriptedFile(bytes: bytes)
        let server = try ScriptedServer { request, reply in
            switch request.target {
            case "/a": try reply.respond(status, ["Location": "/b"], "moved")
            case "/b": try reply.respond(status, ["Location": "/c"])
            default: try file.serve(request, reply)
            }
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate()
        let task = fixture.session(delegate).downloadTask(
            with: try SessionFixture.request(server.url + "/a", "GET", ["X-Own": "1", "Authorization": "Bearer mine"]))
        task.resume()
        #expect(try delegate.ending() == nil)
        expectSame(delegate.file ?? [], bytes)
        #expect(delegate.redirections.map(\.status) == [status, status])
        #expect(delegate.redirections.map { $0.from?.path } == ["/a", "/b"])
        #expect(delegate.redirections.map { $0.request.url?.path } == ["/b", "/c"])
        #expect(delegate.redirections[0].request.value(forHTTPHeaderField: "Authorization") == "Bearer mine")
        #expect(task.currentRequest?.url?.path == "/c" && task.response?.url?.path == "/c")
        #expect(task.originalRequest?.url?.path == "/a")
        #expect(server.requests.allSatisfy { field($0, "X-Own") == "1" })
    }

    @Test("the delegate can change the URL and the fields; fields that it adds are also sent to another origin")
    func changed() async throws {
        let file = ScriptedFile(bytes: bytes)
        let other = try ScriptedServer { try file.serve($0, $1) }
        let server = try ScriptedServer { _, reply in try reply.respond(302, ["Location": "\(other.url)/unused"]) }
        let fixture = try SessionFixture()
        let address = other.url
        let delegate = SessionExchangeDelegate(redirect: { proposed in
            var request = proposed
            request.url = URL(string: address + "/chosen")
            request.setValue("Bearer other", forHTTPHeaderField: "Authorization")
            request.setValue(nil, forHTTPHeaderField: "Accept-Language")
            return request
        })
        let task = fixture.session(delegate).downloadTask(
            with: try SessionFixture.request(
                server.url + "/a", "GET", ["Authorization": "Bearer mine", "Accept-Language": "en"]))
        task.resume()
        #expect(try delegate.ending() == nil)
        #expect(delegate.redirections.first?.request.value(forHTTPHeaderField: "Authorization") == nil)
        #expect(delegate.redirections.first?.request.value(forHTTPHeaderField: "Accept-Language") == "en")
        #expect(other.requests.map(\.target) == ["/chosen"])
        #expect(field(other.requests.first, "Authorization") == "Bearer other")
        #expect(field(other.requests.first, "Accept-Language") == nil)
        #expect(field(server.requests.first, "Authorization") == "Bearer mine")
        #expect(task.currentRequest?.url?.path == "/chosen")
        #expect(task.currentRequest?.value(forHTTPHeaderField: "Authorization") == "Bearer other")
    }

    @Test("if the delegate declines a redirection of a download, the task has the redirection as response and file")
    func declined() async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(302, ["Location": "/b"], "moved to b") }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate(redirect: { _ in nil })
        let session = fixture.session(delegate)
        let task = session.downloadTask(with: try SessionFixture.request(server.url + "/a"))
        task.resume()
        #expect(try delegate.ending() == nil)
        #expect(delegate.file == Array("moved to b".utf8))
        #expect((task.response as? HTTPURLResponse)?.statusCode == 302 && task.response?.url?.path == "/a")
        #expect(delegate.metrics.map(\.redirectCount) == [0])
        #expect(delegate.metrics.map(\.transactionMetrics.count) == [1])
        #expect(server.requests.count == 1)
        #expect(eventually { fixture.stored.isEmpty })
    }

    @Test(
        "the delegate of an upload decides about 307 and 308, and the upload uses the URL that it chooses",
        arguments: [307, 308])
    func upload(status: Int) async throws {
        let model = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            if request.target == "/a" { return try reply.respond(status, ["Location": "/b"]) }
            try model.serve(request, reply)
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate(redirect: { proposed in
            var request = proposed
            request.url = proposed.url?.deletingLastPathComponent().appendingPathComponent("c")
            return request
        })
        let task = fixture.session(delegate).uploadTask(
            with: try SessionFixture.request(server.url + "/a", "POST", ["Content-Type": "text/plain"]),
            from: Data(bytes))
        task.resume()
        #expect(try delegate.ending() == nil)
        expectSame(model.inventory.bytes, bytes)
        #expect(server.requests.map(\.target) == ["/a", "/c"])
        #expect(delegate.redirections.first?.request.httpMethod == "POST")
        #expect(delegate.redirections.first?.request.value(forHTTPHeaderField: "Content-Type") == "text/plain")
        #expect(field(server.requests.last, "Content-Type") == "text/plain")
        #expect(task.response?.url?.path == "/c")
    }

    @Test("an upload whose redirection is declined has the redirection as its response")
    func declinedUpload() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.respond(307, ["Location": "/b"], "elsewhere")
        }
        let fixture = try SessionFixture()
        let delegate = SessionExchangeDelegate(redirect: { _ in nil })
        let task = fixture.session(delegate).uploadTask(
            with: try SessionFixture.request(server.url + "/a", "POST"), from: Data(bytes))
        task.resume()
        #expect(try delegate.ending() == nil)
        #expect((task.response as? HTTPURLResponse)?.statusCode == 307)
        #expect(delegate.content == Array("elsewhere".utf8))
        #expect(server.requests.count == 1)
    }

    @Test("a task that is canceled while its delegate decides about a redirection ends")
    func canceled() async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(302, ["Location": "/b"]) }
        let fixture = try SessionFixture()
        let delegate = UndecidedDelegate()
        let task = fixture.session(delegate).downloadTask(with: try SessionFixture.request(server.url + "/a"))
        task.resume()
        #expect(delegate.isAsked.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0 ? () : nil } != nil)
        _ = await task.cancelByProducingResumeData()
        #expect((task.error as? URLError)?.code == .cancelled)
        #expect(server.requests.count == 1)
    }
}

/// A delegate that never answers.
private final class UndecidedDelegate: NSObject, URLSessionTaskDelegate {
    let isAsked = Monitor(false)

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        isAsked.raise()
    }
}
