import ConformanceKit
import Foundation
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

/// The listings of Apple's article "Pausing and resuming uploads", unchanged.
private final class UploadArticle: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
    // Used by the test, and by the serial delegate queue while the test waits.
    var session: URLSession = .shared
    var uploadTask: URLSessionUploadTask?
    var resumeData: Data?
    var response: (Data, URLResponse)?
    let isPaused = Monitor(false)
    let isComplete = Monitor(false)

    func pause(_ uploadTask: URLSessionUploadTask) {
        uploadTask.cancel { resumeData in
            defer { self.isPaused.raise() }
            guard let resumeData else {
                // The upload can't be resumed; remove the upload from the UI if necessary.
                return
            }
            self.resumeData = resumeData
        }
    }

    func upload(_ request: URLRequest, _ fileURL: URL) async throws {
        do {
            let (data, response) = try await session.upload(for: request, fromFile: fileURL)
            self.response = (data, response)
        } catch let error as URLError {
            guard let resumeData = error.uploadTaskResumeData else {
                // The upload can't be resumed.
                return
            }
            self.resumeData = resumeData
        }
    }

    func resume() {
        guard let resumeData = self.resumeData else {
            // Inform the user that the upload can't be resumed.
            return
        }

        let uploadTask = session.uploadTask(withResumeData: resumeData)
        uploadTask.resume()
        self.uploadTask = uploadTask
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        defer { isComplete.raise() }
        guard let error = error else {
            // Handle success case.
            return
        }
        let userInfo = (error as NSError).userInfo
        if let resumeData = userInfo[NSURLSessionUploadTaskResumeData] as? Data {
            self.resumeData = resumeData
        }
        // Perform any other error handling.
    }
}

@Suite("Session: the article on pausing and resuming uploads", .blocking)
struct SessionUploadListingTests {
    @Test("listings 1 and 3: an upload is paused, and a task with its resume data sends the remaining bytes")
    func pauseAndResume() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let bytes = Payload.bytes(8_000_000)
            let proxy = try HoldingProxy(upstream: server.port, limit: 1_000_000)
            let article = UploadArticle()
            article.session = fixture.session(article)
            let request = try SessionFixture.request(proxy.url + "/files/a.bin", "PUT")
            let task = article.session.uploadTask(with: request, fromFile: try fixture.file(bytes))
            task.resume()
            #expect(eventually { task.countOfBytesSent > 300_000 })
            article.pause(task)
            #expect(article.isPaused.awaitAndReset() && article.isComplete.awaitAndReset())
            #expect(article.resumeData != nil)
            #expect((task.error as? URLError)?.code == .cancelled)
            #expect((task.error as? URLError)?.uploadTaskResumeData == article.resumeData)
            #expect(task.state == .completed)
            proxy.release()
            article.resume()
            #expect(article.isComplete.awaitAndReset())
            #expect(article.uploadTask?.error == nil)
            #expect((article.uploadTask?.response as? HTTPURLResponse)?.statusCode == 201)
            expectSame(server.published("a.bin") ?? [], bytes)
            #expect(fixture.stored.isEmpty)
        }
    }

    @Test("listing 2: the error of a failed upload contains its resume data, with await and for the delegate")
    func recover() async throws {
        let upload = ScriptedUpload()
        let isDown = Monitor(true)
        let server = try ScriptedServer { request, reply in
            guard isDown.withLock({ $0 }) else { return try upload.serve(request, reply) }
            if request.method == "POST" {
                try reply.interim(104, upload.announcement)
                try upload.receiveContent(reply, atMost: 100_000)
            }
            reply.reset()
        }
        let fixture = try SessionFixture()
        let bytes = Payload.bytes(500_000)
        let file = try fixture.file(bytes)
        let article = UploadArticle()
        article.session = fixture.session(article)
        try await article.upload(try SessionFixture.request(server.url + "/a", "POST"), file)
        let first = try #require(article.resumeData)
        article.resumeData = nil

        // The upload fails again, with a task and its delegate.
        let task = article.session.uploadTask(withResumeData: first)
        task.resume()
        #expect(article.isComplete.awaitAndReset())
        let error = try #require(task.error as? URLError)
        #expect(error.code == .networkConnectionLost)
        #expect(error.uploadTaskResumeData == article.resumeData)
        #expect(article.resumeData != nil && article.resumeData != first)

        isDown.withLock { $0 = false }
        article.resume()
        #expect(article.isComplete.awaitAndReset())
        #expect(article.uploadTask?.error == nil)
        expectSame(upload.inventory.bytes, bytes)
        #expect(fixture.stored.isEmpty)
    }

    @Test("an upload continues after a short interruption without any code of the caller")
    func momentary() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let cuts = Monitor([700_000, 1_500_000, 900_000, 600_000])
            let proxy = try FaultProxy(upstream: server.port) { cuts.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
            let bytes = Payload.bytes(6_000_000)
            let article = UploadArticle()
            article.session = fixture.session(article)
            let file = try fixture.file(bytes)
            try await article.upload(try SessionFixture.request(proxy.url + "/files/a.bin", "PUT"), file)
            #expect(proxy.cuts >= 2)
            #expect((article.response?.1 as? HTTPURLResponse)?.statusCode == 201)
            expectSame(server.published("a.bin") ?? [], bytes)
        }
    }
}
