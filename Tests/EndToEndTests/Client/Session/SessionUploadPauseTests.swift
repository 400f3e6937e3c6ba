import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

@Suite("Session: uploads that are paused", .blocking)
struct SessionUploadPauseTests {
    /// Runs `body` with a server behind a proxy that passes on 500,000 bytes of each connection and then waits until it
    /// is released.
    private func holding(_ body: (ServerProcess, HoldingProxy, SessionFixture) async throws -> Void) async throws {
        try await withServer { server in
            let proxy = try HoldingProxy(upstream: server.port, limit: 500_000)
            try await body(server, proxy, try SessionFixture())
        }
    }

    /// Begins an upload, and waits until a part of its bytes was sent.
    private func begin(
        _ session: URLSession, _ recorder: SessionRecorder, _ proxy: HoldingProxy, _ file: URL
    ) throws -> URLSessionUploadTask {
        let request = try SessionFixture.request(proxy.url + "/files/a.bin", "PUT")
        let task = session.uploadTask(with: request, fromFile: file)
        task.resume()
        #expect(recorder.awaitBytes(200_000, of: task))
        return task
    }

    /// A server that stalls after the first 10,000 bytes while `isDown`.
    private func stallingServer(_ upload: ScriptedUpload, _ isDown: Monitor<Bool>) throws -> ScriptedServer {
        try ScriptedServer { request, reply in
            guard isDown.withLock({ $0 }) else { return try upload.serve(request, reply) }
            try reply.interim(104, upload.announcement)
            try upload.receiveContent(reply, atMost: 10_000)
            reply.stall()
        }
    }

    @Test("suspend stops an upload, and resume continues it")
    func suspend() async throws {
        try await holding { server, proxy, fixture in
            let recorder = SessionRecorder()
            let session = fixture.session(recorder)
            let bytes = Payload.bytes(9_000_000)
            let task = try begin(session, recorder, proxy, fixture.file(bytes))
            task.suspend()
            #expect(task.state == .suspended)
            proxy.release()
            // The second resume may come before the upload has stopped.
            task.resume()
            task.suspend()
            task.suspend()
            task.resume()
            #expect(task.state == .suspended)
            task.resume()
            #expect(task.state == .running)
            #expect(recorder.succeeds(task))
            expectSame(server.published("a.bin") ?? [], bytes)
            #expect(fixture.stored.isEmpty)
        }
    }

    @Test("cancel ends an upload without resume data, and deletes the upload resource")
    func cancel() async throws {
        let upload = ScriptedUpload()
        let server = try ScriptedServer { request, reply in
            if request.method == "DELETE" { return try upload.serve(request, reply) }
            try reply.interim(104, upload.announcement)
            try upload.receiveContent(reply, atMost: 10_000)
            reply.stall()
        }
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let session = fixture.session(recorder)
        let request = try SessionFixture.request(server.url + "/a", "POST")
        let task = session.uploadTask(with: request, from: Data(Payload.bytes(10_000_000)))
        task.resume()
        #expect(recorder.receivesEvent(task) { if case .informational = $0 { true } else { false } })
        task.cancel()
        #expect(task.state == .canceling || task.state == .completed)
        let error = try recorder.error(of: task)
        #expect(error.code == .cancelled && error.uploadTaskResumeData == nil)
        #expect(eventually { server.requests.contains { $0.method == "DELETE" && $0.target == "/u/1" } })
        task.resume()
        task.cancel()
        #expect(await task.cancelByProducingResumeData() == nil)
        #expect(recorder.events(of: task).filter { if case .completed = $0 { true } else { false } }.count == 1)
    }

    @Test("a task that never ran can be canceled, and its resume data stays valid")
    func untouched() async throws {
        try await holding { server, proxy, fixture in
            let recorder = SessionRecorder()
            let session = fixture.session(recorder)
            let bytes = Payload.bytes(5_000_000)
            let request = try SessionFixture.request(proxy.url + "/files/a.bin", "PUT")
            let task = session.uploadTask(with: request, fromFile: try fixture.file(bytes))
            let idle = session.uploadTask(with: request, fromFile: try fixture.file(bytes))
            #expect(await idle.cancelByProducingResumeData() == nil)
            #expect(try recorder.error(of: idle).code == .cancelled)
            task.resume()
            #expect(recorder.awaitBytes(200_000, of: task))
            let data = try #require(await task.cancelByProducingResumeData())
            let second = session.uploadTask(withResumeData: data)
            #expect(second.originalRequest?.url == request.url && second.originalRequest?.httpMethod == "PUT")
            #expect(await second.cancelByProducingResumeData() == data)
            let third = session.uploadTask(withResumeData: data)
            third.cancel()
            #expect(try recorder.error(of: third).uploadTaskResumeData == nil)
            proxy.release()
            let (_, response) = try await session.upload(resumeFrom: data)
            #expect((response as? HTTPURLResponse)?.statusCode == 201)
            expectSame(server.published("a.bin") ?? [], bytes)
        }
    }

    @Test(
        "an upload from memory is resumed in the same process with its credentials, which the resume data does not have"
    )
    func context() async throws {
        let upload = ScriptedUpload()
        let isDown = Monitor(true)
        let server = try stallingServer(upload, isDown)
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let session = fixture.session(recorder)
        let bytes = Payload.bytes(4_000_000)
        let request = try SessionFixture.request(server.url + "/a", "POST", ["Authorization": "Bearer very-secret"])
        let task = session.uploadTask(with: request, from: Data(bytes))
        task.resume()
        #expect(recorder.awaitBytes(1, of: task))
        let data = try #require(await task.cancelByProducingResumeData())
        #expect(!String(decoding: data, as: UTF8.self).contains("very-secret"))
        isDown.withLock { $0 = false }
        // Another session of the process can use the bytes and the credentials, too.
        let answer = SessionAnswer<Data>()
        fixture.session().uploadTask(withResumeData: data, completionHandler: answer.handler).resume()
        #expect(try answer.value().status == 200)
        expectSame(upload.inventory.bytes, bytes)
        #expect(server.requests.allSatisfy { $0.fields["Authorization"] == "Bearer very-secret" })
    }

    @Test("renewed credentials are used for the remaining requests")
    func renewed() async throws {
        let upload = ScriptedUpload()
        let isDown = Monitor(true)
        let server = try stallingServer(upload, isDown)
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let session = fixture.session(recorder)
        let file = try fixture.file(Payload.bytes(4_000_000))
        let request = try SessionFixture.request(server.url + "/a", "POST", ["Authorization": "Bearer old"])
        let task = session.uploadTask(with: request, fromFile: file)
        task.resume()
        #expect(recorder.awaitBytes(1, of: task))
        let data = try #require(await task.cancelByProducingResumeData())
        isDown.withLock { $0 = false }
        let fresh = try SessionFixture.request(server.url + "/a", "POST", ["Authorization": "Bearer new"])
        let second = session.uploadTask(withResumeData: data, request: fresh)
        second.resume()
        #expect(recorder.succeeds(second))
        #expect(server.requests.last?.fields["Authorization"] == "Bearer new")
    }

    @Test("the progress of a task can pause, resume and cancel the task")
    func progress() async throws {
        try await holding { server, proxy, fixture in
            let recorder = SessionRecorder()
            let session = fixture.session(recorder)
            let task = try begin(session, recorder, proxy, fixture.file(Payload.bytes(6_000_000)))
            #expect(task.progress.totalUnitCount == 6_000_000)
            task.progress.pause()
            #expect(eventually { task.state == .suspended })
            task.progress.resume()
            #expect(eventually { task.state == .running })
            task.progress.cancel()
            #expect(try recorder.error(of: task).code == .cancelled)
        }
    }

    @Test("resume data that is invalid, used or of another kind of task fails the task")
    func unusable() async throws {
        try await holding { server, proxy, fixture in
            let recorder = SessionRecorder()
            let session = fixture.session(recorder)
            let garbage = session.uploadTask(withResumeData: Data("garbage".utf8))
            #expect(garbage.originalRequest == nil)
            garbage.resume()
            #expect(try recorder.error(of: garbage).code == .unsupportedURL)

            let plain = URLSession(configuration: .default, delegate: recorder, delegateQueue: nil)
            let refused = SessionAnswer<Data>()
            plain.uploadTask(withResumeData: Data("garbage".utf8), completionHandler: refused.handler).resume()
            #expect(try refused.value().urlError?.code == .unsupportedURL)

            let file = try fixture.file(Payload.bytes(4_000_000))
            let task = try begin(session, recorder, proxy, file)
            let data = try #require(await task.cancelByProducingResumeData())
            let wrong = session.downloadTask(withResumeData: data)
            wrong.resume()
            #expect(try recorder.error(of: wrong).code == .unsupportedURL)

            proxy.release()
            _ = try await session.upload(resumeFrom: data)
            await #expect { try await session.upload(resumeFrom: data) } throws: {
                ($0 as? URLError)?.code == .unsupportedURL
            }
        }
    }

    @Test("a file that was changed after a pause is not resumed")
    func changed() async throws {
        try await holding { server, proxy, fixture in
            let recorder = SessionRecorder()
            let session = fixture.session(recorder)
            let task = try begin(session, recorder, proxy, fixture.file(Payload.bytes(4_000_000)))
            let data = try #require(await task.cancelByProducingResumeData())
            _ = try fixture.file(Payload.bytes(4_000_000, seed: 9))
            let second = session.uploadTask(withResumeData: data)
            second.resume()
            #expect(try recorder.error(of: second).code == .cannotOpenFile)
        }
    }
}
