import ConformanceKit
import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

@Suite("Session: invalidation, and tasks of FoundationNetworking", .blocking)
struct SessionLifecycleTests {
    /// A server that receives the content of uploads when the gate is open, and answers GET requests at once.
    private func gated(_ gate: Monitor<Bool>) throws -> ScriptedServer {
        try ScriptedServer { request, reply in
            let upload = ScriptedUpload()
            if request.method == "GET" { return try reply.respond(200, [:], "hello") }
            if request.fields.contains("Upload-Complete") { try reply.interim(104, upload.announcement) }
            _ = gate.wait(until: Deadline(in: .seconds(50)).nanoseconds) { $0 ? () : nil }
            _ = try reply.readContent()
            try reply.respond(200, [:], "taken")
        }
    }

    private func isInvalid(_ recorder: SessionRecorder) -> Bool {
        recorder.receivesEvent(nil) { if case .invalid = $0 { true } else { false } }
    }

    @Test("invalidateAndCancel ends all tasks, and then the session")
    func invalidateAndCancel() async throws {
        let gate = Monitor(false)
        let server = try gated(gate)
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let session = fixture.session(recorder)
        let request = try SessionFixture.request(server.url + "/a", "POST")
        let running = session.uploadTask(with: request, from: Data([1, 2, 3]))
        let idle = session.uploadTask(with: request, from: Data([1]))
        running.resume()
        #expect(server.awaitRequests(1))
        session.invalidateAndCancel()
        #expect(isInvalid(recorder))
        gate.raise()
        var endings: [String] = []
        for event in recorder.events() {
            switch event {
            case .completed(let error): endings.append(error?.code == .cancelled ? "canceled" : "other")
            case .invalid: endings.append("invalid")
            default: continue
            }
        }
        #expect(endings == ["canceled", "canceled", "invalid"])
        #expect(running.state == .completed && idle.state == .completed)
        #expect(eventually { session.delegate == nil })
        let answer = SessionAnswer<Data>()
        session.uploadTask(with: request, from: Data([1]), completionHandler: answer.handler).resume()
        #expect(try answer.value().urlError?.code == .cancelled)
    }

    @Test("finishTasksAndInvalidate lets the running tasks complete")
    func finishTasks() async throws {
        let gate = Monitor(false)
        let server = try gated(gate)
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let session = fixture.session(recorder)
        let task = session.uploadTask(with: try SessionFixture.request(server.url + "/a", "POST"), from: Data([1, 2]))
        task.resume()
        #expect(server.awaitRequests(1))
        session.finishTasksAndInvalidate()
        #expect(task.state == .running)
        gate.raise()
        #expect(recorder.succeeds(task))
        #expect(isInvalid(recorder))
    }

    @Test("canceling a task that awaits a transfer cancels the transfer")
    func canceledWaiting() async throws {
        let gate = Monitor(false)
        let server = try gated(gate)
        let fixture = try SessionFixture()
        let session = fixture.session()
        let request = try SessionFixture.request(server.url + "/a", "POST")
        let waiting = Task { try await session.upload(for: request, from: Data([1, 2, 3])) }
        #expect(server.awaitRequests(1))
        waiting.cancel()
        await #expect { try await waiting.value } throws: { ($0 as? URLError)?.code == .cancelled }
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await session.upload(for: request, from: Data([1, 2, 3]))
        }
        await #expect { try await late.value } throws: { ($0 as? URLError)?.code == .cancelled }
        gate.raise()
    }

    @Test("a delegate that rejects a response ends the task")
    func unwanted() async throws {
        let server = try gated(Monitor(true))
        let fixture = try SessionFixture()
        let rejecting = RejectingDelegate()
        let session = fixture.session(rejecting)
        session.uploadTask(with: try SessionFixture.request(server.url + "/a", "POST"), from: Data([1])).resume()
        let code = rejecting.ending.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0 }
        #expect(code == .cancelled)
    }

    @Test("a session without references is released when its tasks have ended")
    func release() async throws {
        let gate = Monitor(true)
        let server = try gated(gate)
        let fixture = try SessionFixture()
        weak var released: ResumableURLSession?
        weak var task: URLSessionUploadTask?
        do {
            let session = fixture.session()
            released = session
            let answer = SessionAnswer<Data>()
            let request = try SessionFixture.request(server.url + "/a", "POST")
            let upload = session.uploadTask(with: request, from: Data([1]), completionHandler: answer.handler)
            task = upload
            upload.resume()
            #expect(try answer.value().status == 200)
        }
        #expect(eventually { released == nil && task == nil })
    }

    @Test("a session lists its tasks together with those of FoundationNetworking")
    func tasks() async throws {
        let gate = Monitor(false)
        let server = try gated(gate)
        let fixture = try SessionFixture()
        let session = fixture.session()
        let upload = session.uploadTask(with: try SessionFixture.request(server.url + "/a", "POST"), from: Data([1]))
        upload.resume()
        let all: [URLSessionTask] = await withCheckedContinuation { continuation in
            session.getAllTasks { continuation.resume(returning: $0) }
        }
        #expect(all.contains { $0 === upload })
        let uploads: [URLSessionUploadTask] = await withCheckedContinuation { continuation in
            session.getTasksWithCompletionHandler { _, uploads, _ in continuation.resume(returning: uploads) }
        }
        #expect(uploads.contains { $0 === upload })
        gate.raise()
        session.finishTasksAndInvalidate()
    }

    @Test("invalidateAndCancel after finishTasksAndInvalidate cancels the remaining tasks", arguments: [true, false])
    func cancelAfterFinish(hasTransfer: Bool) throws {
        let server = try ScriptedServer { _, reply in
            try reply.begin(200, ["Content-Length": "1000"])
            try reply.send("beginning")
            reply.stall()
        }
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let session = fixture.session(recorder)
        let request = try SessionFixture.request(server.url)
        let data = session.dataTask(with: request)
        let download = hasTransfer ? session.downloadTask(with: request) : nil
        data.resume()
        download?.resume()
        #expect(server.awaitRequests(hasTransfer ? 2 : 1))
        session.finishTasksAndInvalidate()
        session.invalidateAndCancel()
        #expect(try recorder.error(of: data).code == .cancelled)
        if let download { #expect(try recorder.error(of: download).code == .cancelled) }
        #expect(recorder.receivesEvent(nil) { if case .invalid = $0 { true } else { false } })
        let endings = recorder.events().filter { if case .invalid = $0 { true } else { false } }
        #expect(endings.count == 1)
    }

    @Test("data tasks, streamed uploads and other schemes are handled by FoundationNetworking, unchanged")
    func superclass() async throws {
        let gate = Monitor(true)
        let server = try gated(gate)
        let fixture = try SessionFixture()
        let session = fixture.session()
        let url = try #require(URL(string: server.url + "/a"))
        let (data, response) = try await session.data(from: url)
        #expect(String(decoding: data, as: UTF8.self) == "hello")
        #expect((response as? HTTPURLResponse)?.statusCode == 200)

        let answer = SessionAnswer<Data>()
        session.dataTask(with: url, completionHandler: answer.handler).resume()
        #expect(try answer.value().content == Data("hello".utf8))

        let streaming = Streamer()
        let other = ResumableURLSession(configuration: .default, delegate: streaming, delegateQueue: nil)
        let task = other.uploadTask(withStreamedRequest: try SessionFixture.request(server.url + "/s", "POST"))
        task.resume()
        #expect(streaming.isComplete.wait(until: Deadline(in: .seconds(60)).nanoseconds) { $0 ? () : nil } != nil)
        let streamed = try #require(server.requests.first { $0.target == "/s" })
        #expect(streamed.content == Array("from a stream".utf8))
        #expect(!streamed.fields.contains("Upload-Complete"))

        // A download by a method other than GET cannot be resumed, but it completes.
        let posted = SessionAnswer<URL>()
        let download = session.downloadTask(
            with: try SessionFixture.request(server.url + "/p", "POST"), completionHandler: posted.handler)
        download.resume()
        #expect(try posted.value().status == 200)
    }
}

private final class Streamer: NSObject, URLSessionDataDelegate {
    let isComplete = Monitor(false)

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(InputStream(data: Data("from a stream".utf8)))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        isComplete.raise()
    }
}

private final class RejectingDelegate: NSObject, URLSessionDataDelegate {
    let ending = Monitor<URLError.Code?>(nil)

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        completionHandler(.cancel)
        // A second call has no effect.
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        Issue.record("content of an unwanted response")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        ending.withLock { $0 = (error as? URLError)?.code }
        ending.notifyAll()
    }
}
