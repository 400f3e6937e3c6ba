import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

@Suite("Session: downloads", .blocking)
struct SessionDownloadTests {
    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    private func content(_ recorder: SessionRecorder, _ task: URLSessionTask) -> [UInt8]? {
        for event in recorder.events(of: task) {
            if case .file(let bytes, _) = event { return bytes }
        }
        return nil
    }

    /// Publishes a file, and runs `body` with a proxy that stops in the middle of a response until it is released.
    private func withStallingProxy(
        _ bytes: [UInt8], after part: Int = 2_000_000,
        _ body: (ServerProcess, StallingProxy, SessionFixture, SessionRecorder) async throws -> Void
    ) async throws {
        try await withServer { server in
            try server.publish(bytes, as: "a.bin")
            try await body(server, try StallingProxy(to: server, after: part), try SessionFixture(), SessionRecorder())
        }
    }

    @Test(
        "a delegate gets the progress, the file and the end on its queue; the file is removed after the delegate call"
    )
    func delegate() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let recorder = SessionRecorder()
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            let session = fixture.session(recorder, queue: queue)
            let bytes = Payload.bytes(3_000_000)
            try server.publish(bytes, as: "a.bin")
            let task = session.downloadTask(with: try url(server.url("/files/a.bin")))
            task.resume()
            #expect(recorder.succeeds(task))
            var written: Int64 = 0
            var path = ""
            for event in recorder.events(of: task) {
                switch event {
                case .written(let count, let total, let expected):
                    written += count
                    #expect(total == written && expected == 3_000_000 && path.isEmpty)
                case .file(let content, let place):
                    expectSame(content, bytes)
                    path = place
                case .completed: #expect(!path.isEmpty)
                default: Issue.record("\(event)")
                }
            }
            #expect(written == 3_000_000)
            #expect(!FileManager.default.fileExists(atPath: path))
            #expect(recorder.queues.allSatisfy { $0 === queue })
            #expect(task.countOfBytesReceived == 3_000_000 && task.countOfBytesExpectedToReceive == 3_000_000)
            #expect(task.progress.fractionCompleted == 1 && task.state == .completed && task.error == nil)
            let response = try #require(task.response as? HTTPURLResponse)
            #expect(response.statusCode == 200 && response.value(forHTTPHeaderField: "ETag") != nil)
            #expect(fixture.stored.isEmpty)
        }
    }

    @Test(
        "a task refuses resume data of a download to a destination, because it would delete that file; the data stays valid"
    )
    func foreignDestination() async throws {
        try await withServer { server in
            let bytes = Payload.bytes(3_000_000)
            try server.publish(bytes, as: "a.bin")
            let fixture = try SessionFixture()
            let destination = fixture.directory.path + "/precious"
            try Data("precious".utf8).write(to: URL(fileURLWithPath: destination))
            let client = TransferClient(fixture.transfers { $0.rateLimit = 100_000 })
            let download = client.download(TransferRequest(server.url("/files/a.bin")), to: .file(destination))
            for await event in download.events() {
                if case .received(let position, _) = event, position > 0 { break }
            }
            let data = try #require(await download.pause())
            let recorder = SessionRecorder()
            let task = fixture.session(recorder).downloadTask(withResumeData: data.data)
            task.resume()
            #expect(try recorder.error(of: task).code == .unsupportedURL)
            #expect(FileManager.default.contents(atPath: destination) == Data("precious".utf8))
            let unlimitedClient = TransferClient(fixture.transfers())
            _ = try await unlimitedClient.resumeDownload(data).value()
            expectSame([UInt8](try Data(contentsOf: URL(fileURLWithPath: destination))), bytes)
        }
    }

    @Test("a file that the delegate moved is kept")
    func moved() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let path = fixture.directory.path + "/kept.bin"
            let recorder = SessionRecorder(keptPath: path)
            let bytes = Payload.bytes(200_000)
            try server.publish(bytes, as: "a.bin")
            let task = fixture.session(recorder).downloadTask(with: try url(server.url("/files/a.bin")))
            task.resume()
            #expect(recorder.succeeds(task))
            expectSame(FileManager.default.contents(atPath: path).map { [UInt8]($0) } ?? [], bytes)
        }
    }

    @Test("the file is removed when the completion handler returns; the file of an awaited download is kept")
    func handlers() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let recorder = SessionRecorder()
            let session: URLSession = fixture.session(recorder)
            let bytes = Payload.bytes(300_000)
            try server.publish(bytes, as: "a.bin")
            let source = try url(server.url("/files/a.bin"))
            let answer = SessionAnswer<Data>()
            let path = Monitor("")
            let task = session.downloadTask(with: source) { file, response, error in
                path.withLock { $0 = file?.path ?? "" }
                answer.receive(file.flatMap { try? Data(contentsOf: $0) }, response, error)
            }
            task.resume()
            let value = try answer.value()
            #expect(value.status == 200 && value.error == nil)
            expectSame([UInt8](value.content ?? Data()), bytes)
            #expect(eventually { !FileManager.default.fileExists(atPath: path.withLock { $0 }) })

            let (file, response) = try await session.download(for: URLRequest(url: source))
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            expectSame([UInt8](try Data(contentsOf: file)), bytes)
            try FileManager.default.removeItem(at: file)
            let (other, _) = try await session.download(from: source, delegate: SessionRecorder())
            expectSame([UInt8](try Data(contentsOf: other)), bytes)
            try FileManager.default.removeItem(at: other)
            #expect(recorder.events().isEmpty && fixture.stored.isEmpty)
        }
    }

    @Test(
        "an error status is an error of the task, without a file (Table 1 of Apple's page on URLSessionDownloadTask)",
        arguments: [
            (401, URLError.Code.userAuthenticationRequired), (403, .noPermissionsToReadFile),
            (407, .userAuthenticationRequired), (404, .fileDoesNotExist), (410, .fileDoesNotExist),
            (500, .fileDoesNotExist), (503, .fileDoesNotExist),
        ])
    func refusals(status: Int, code: URLError.Code) async throws {
        let server = try ScriptedServer { _, reply in try reply.respond(status, [:], "no such thing") }
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let session = fixture.session(recorder)
        let task = session.downloadTask(with: try url(server.url + "/a"))
        task.resume()
        #expect(try recorder.error(of: task).code == code)
        #expect((task.response as? HTTPURLResponse)?.statusCode == status)
        #expect(content(recorder, task) == nil)
        await #expect { try await session.download(from: url(server.url + "/a")) } throws: {
            ($0 as? URLError)?.code == code
        }
        #expect(fixture.stored.isEmpty)
    }

    @Test("after a short interruption a download continues automatically, and the delegate gets no resumption event")
    func momentary() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let recorder = SessionRecorder()
            let bytes = Payload.bytes(6_000_000)
            try server.publish(bytes, as: "a.bin")
            let cuts = Monitor([700_000, 1_500_000, 900_000])
            let proxy = try FaultProxy(to: server.port) {
                cuts.withLock { $0.isEmpty ? nil : FaultProxy.Fault(direction: .toClient, after: $0.removeFirst()) }
            }
            let task = fixture.session(recorder).downloadTask(with: try url(proxy.url + "/files/a.bin"))
            task.resume()
            #expect(recorder.succeeds(task))
            #expect(proxy.cuts == 3)
            expectSame(content(recorder, task) ?? [], bytes)
            var written: Int64 = 0
            for event in recorder.events(of: task) {
                switch event {
                case .written(let count, let total, _):
                    written += count
                    #expect(total == written)
                case .resumed: Issue.record("\(event)")
                default: continue
                }
            }
            #expect(written == 6_000_000)
        }
    }

    @Test("a file that changed during the download is downloaded from its beginning, and the delegate gets offset 0")
    func changed() async throws {
        try await withStallingProxy(Payload.bytes(5_000_000)) { server, proxy, fixture, recorder in
            let session = fixture.session(recorder)
            let task = session.downloadTask(with: try proxy.url("/files/a.bin"))
            task.resume()
            #expect(recorder.awaitBytes(500_000, of: task))
            let data = try #require(await task.cancelByProducingResumeData())
            let bytes = Payload.bytes(4_000_000, seed: 2)
            try server.publish(bytes, as: "a.bin")
            proxy.release()
            let second = session.downloadTask(withResumeData: data)
            second.resume()
            #expect(recorder.succeeds(second))
            expectSame(content(recorder, second) ?? [], bytes)
            let offsets = recorder.events(of: second).compactMap { event -> Int64? in
                if case .resumed(let offset, _) = event { offset } else { nil }
            }
            #expect(offsets == [0])
        }
    }

    @Test("suspend stops a download, and resume continues it")
    func suspend() async throws {
        let bytes = Payload.bytes(6_000_000)
        try await withStallingProxy(bytes) { _, proxy, fixture, recorder in
            let session = fixture.session(recorder)
            let task = session.downloadTask(with: try proxy.url("/files/a.bin"))
            task.resume()
            #expect(recorder.awaitBytes(500_000, of: task))
            task.suspend()
            #expect(task.state == .suspended)
            proxy.release()
            task.resume()
            #expect(task.state == .running)
            #expect(recorder.succeeds(task))
            expectSame(content(recorder, task) ?? [], bytes)
            #expect(fixture.stored.isEmpty)
        }
    }

    @Test("cancel leaves no file behind")
    func cancel() async throws {
        try await withStallingProxy(Payload.bytes(5_000_000)) { _, proxy, fixture, recorder in
            let session = fixture.session(recorder)
            let task = session.downloadTask(with: try proxy.url("/files/a.bin"))
            task.resume()
            #expect(recorder.awaitBytes(500_000, of: task))
            #expect(!fixture.stored.isEmpty)
            task.cancel()
            let error = try recorder.error(of: task)
            #expect(error.code == .cancelled && error.downloadTaskResumeData == nil)
            #expect(eventually { fixture.stored.isEmpty })

            let paused = session.downloadTask(with: try proxy.url("/files/a.bin"))
            paused.resume()
            #expect(recorder.awaitBytes(500_000, of: paused))
            paused.suspend()
            #expect(eventually { fixture.stored.contains { $0.hasSuffix(".ticket") } })
            paused.cancel()
            #expect(try recorder.error(of: paused).code == .cancelled)
            #expect(eventually { fixture.stored.isEmpty })
        }
    }

    @Test("a download without a validator cannot be resumed")
    func unresumable() async throws {
        let server = try ScriptedServer { _, reply in
            try reply.begin(200, ["Content-Length": "1000000"])
            try reply.send(Payload.bytes(100_000))
            reply.stall()
        }
        let fixture = try SessionFixture()
        let recorder = SessionRecorder()
        let task = fixture.session(recorder).downloadTask(with: try url(server.url + "/a"))
        task.resume()
        #expect(recorder.awaitBytes(1, of: task))
        #expect(await task.cancelByProducingResumeData() == nil)
        #expect(try recorder.error(of: task).downloadTaskResumeData == nil)
        #expect(fixture.stored.isEmpty)
    }

    @Test("resume data can be used once, with await, with a handler or with another request; invalid data is refused")
    func resumeFrom() async throws {
        let bytes = Payload.bytes(5_000_000)
        try await withStallingProxy(bytes, after: 1_500_000) { server, proxy, fixture, recorder in
            let session = fixture.session(recorder)
            var data: [Data] = []
            for _ in 0..<3 {
                let task = session.downloadTask(with: try proxy.url("/files/a.bin"))
                task.resume()
                #expect(recorder.awaitBytes(500_000, of: task))
                data.append(try #require(await task.cancelByProducingResumeData()))
            }
            proxy.release()
            let (file, response) = try await session.download(resumeFrom: data[0])
            #expect((response as? HTTPURLResponse)?.statusCode == 206)
            expectSame([UInt8](try Data(contentsOf: file)), bytes)
            try FileManager.default.removeItem(at: file)
            let answer = SessionAnswer<Data>()
            session.downloadTask(withResumeData: data[1]) { file, response, error in
                answer.receive(file.flatMap { try? Data(contentsOf: $0) }, response, error)
            }.resume()
            expectSame([UInt8](try answer.value().content ?? Data()), bytes)
            let request = try SessionFixture.request(server.url("/files/a.bin"))
            let other = session.downloadTask(withResumeData: data[2], request: request)
            other.resume()
            #expect(recorder.succeeds(other))
            expectSame(content(recorder, other) ?? [], bytes)
            for unusable in [data[0], Data("garbage".utf8)] {
                await #expect { try await session.download(resumeFrom: unusable) } throws: {
                    ($0 as? URLError)?.code == .unsupportedURL
                }
            }
            #expect(eventually { fixture.stored.isEmpty })
        }
    }

    @Test("a URL whose scheme is not http or https is handled by FoundationNetworking")
    func scheme() async throws {
        let fixture = try SessionFixture()
        let answer = SessionAnswer<URL>()
        let task = fixture.session().downloadTask(
            with: try url("gopher://127.0.0.1/a"), completionHandler: answer.handler)
        task.resume()
        #expect(try answer.value().urlError?.code == .unsupportedURL)
    }
}
