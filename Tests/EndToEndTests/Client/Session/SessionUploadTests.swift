import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer
import ResumableURLSession
import SystemCalls
import TestSupport
import Testing

@Suite("Session: uploads", .blocking)
struct SessionUploadTests {
    @Test("a delegate gets the interim responses, the progress, the response and the end, in order, on its queue")
    func delegate() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let recorder = SessionRecorder()
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            let session = fixture.session(recorder, queue: queue)
            let bytes = Payload.bytes(3_000_000)
            let request = try SessionFixture.request(server.url("/files/a.bin"), "PUT")
            let task = session.uploadTask(with: request, fromFile: try fixture.file(bytes))
            #expect(task.state == .suspended && task.originalRequest == request)
            task.resume()
            #expect(recorder.succeeds(task))
            expectSame(server.published("a.bin") ?? [], bytes)
            var sent: Int64 = 0
            var order: [String] = []
            for event in recorder.events(of: task) {
                switch event {
                case .informational(let status):
                    #expect(status == 104)
                    if order.last != "interim" { order.append("interim") }
                case .sent(let count, let total, let expected):
                    sent += count
                    #expect(total == sent && expected == 3_000_000)
                    if order.last != "sent" { order.append("sent") }
                case .response(let status):
                    #expect(status == 201)
                    order.append("response")
                case .data: order.append("data")
                case .completed: order.append("completed")
                default: Issue.record("\(event)")
                }
            }
            #expect(sent == 3_000_000)
            #expect(order.first == "interim" && order.last == "completed")
            #expect(order.dropLast().filter { $0 == "response" }.count == 1)
            #expect(recorder.queues.allSatisfy { $0 === queue })
            #expect(task.countOfBytesSent == 3_000_000 && task.countOfBytesExpectedToSend == 3_000_000)
            #expect(task.progress.fractionCompleted == 1 && task.state == .completed)
            #expect((task.response as? HTTPURLResponse)?.statusCode == 201 && task.error == nil)
        }
    }

    @Test("a file is opened by the exact bytes of its name, even after a pause", arguments: FileNameTests.names)
    func name(name: FilePath) async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let bytes = Payload.bytes(3_000_000)
            let directory = try FileDescriptor.open(fixture.directory.path, [.readOnly, .directory])
            try directory.open(at: name, [.writeOnly, .create, .exclusive]).write(bytes, at: 0)
            let escaped = name.bytes.map { "%" + String(Int($0) + 0x100, radix: 16).suffix(2) }.joined()
            let url = try #require(URL(string: "file://\(fixture.directory.path)/\(escaped)"))
            let proxy = try HoldingProxy(upstream: server.port, limit: 500_000)
            let session = fixture.session()
            let request = try SessionFixture.request(proxy.url + "/files/a.bin", "PUT")
            let task = session.uploadTask(with: request, fromFile: url)
            task.resume()
            let hasBegun: Bool? = pollUntil(within: .seconds(60)) {
                task.countOfBytesSent > 100_000 || task.state == .completed ? true : nil
            }
            #expect(hasBegun == true && task.error == nil, "\(String(describing: task.error))")
            let data = try #require(await task.cancelByProducingResumeData())
            proxy.release()
            let (_, response) = try await session.upload(resumeFrom: data)
            #expect((response as? HTTPURLResponse)?.statusCode == 201)
            expectSame(server.published("a.bin") ?? [], bytes)
        }
    }

    @Test(
        "the sent request has the method and fields of the caller's request, and the fields of the session",
        arguments: ["PUT", "POST", "GET"])
    func request(method: String) async throws {
        let upload = ScriptedUpload()
        let server = try ScriptedServer { try upload.serve($0, $1) }
        let fixture = try SessionFixture()
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = ["X-Session": "s", "X-Both": "session"]
        let session = fixture.session(configuration: configuration)
        let request = try SessionFixture.request(
            server.url + "/a?b=c", method, ["Content-Type": "text/x-test", "X-Both": "request"])
        let (data, response) = try await session.upload(for: request, from: Data("content".utf8))
        #expect(String(decoding: data, as: UTF8.self) == "stored")
        #expect((response as? HTTPURLResponse)?.statusCode == 200)
        #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "location") == "/doc/1")
        let received = try #require(server.requests.first)
        // A request with content is sent as POST if its method is GET.
        #expect(received.method == (method == "GET" ? "POST" : method))
        #expect(received.target == "/a?b=c")
        #expect(received.fields["Content-Type"] == "text/x-test")
        #expect(received.fields["X-Session"] == "s" && received.fields["X-Both"] == "request")
        #expect(received.fields["Upload-Complete"] == "?1")
    }

    @Test("a completion handler is called at the end, and the session's delegate gets no event")
    func handler() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let recorder = SessionRecorder()
            let queue = OperationQueue()
            let session = fixture.session(recorder, queue: queue)
            let answer = SessionAnswer<Data>()
            let calledOn = Monitor<OperationQueue?>(nil)
            let request = try SessionFixture.request(server.url("/files/a.bin"), "PUT")
            let task = session.uploadTask(with: request, fromFile: try fixture.file(Payload.bytes(100_000))) {
                calledOn.withLock { $0 = OperationQueue.current }
                answer.receive($0, $1, $2)
            }
            task.resume()
            let value = try answer.value()
            #expect(value.status == 201 && value.error == nil && value.content != nil)
            #expect(calledOn.withLock { $0 } === queue)
            let other = session.uploadTask(with: request, from: Data([1]), completionHandler: answer.handler)
            other.resume()
            #expect(eventually { answer.count == 2 })
            #expect(answer.count == 2)
            #expect(recorder.events().isEmpty)
        }
    }

    @Test("the delegate of an awaited upload gets all events except the end, which the caller gets")
    func ownDelegate() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let recorder = SessionRecorder()
            let own = SessionRecorder()
            let session = fixture.session(recorder)
            let request = try SessionFixture.request(server.url("/files/a.bin"), "PUT")
            let file = try fixture.file(Payload.bytes(200_000))
            let (_, response) = try await session.upload(for: request, fromFile: file, delegate: own)
            #expect((response as? HTTPURLResponse)?.statusCode == 201)
            let hasSent = eventually {
                own.events().contains { if case .sent(_, 200_000, 200_000) = $0 { true } else { false } }
            }
            #expect(hasSent)
            #expect(own.events().contains { if case .informational(104) = $0 { true } else { false } })
            #expect(!own.events().contains { if case .completed = $0 { true } else { false } })
            #expect(recorder.events().isEmpty)
        }
    }

    @Test("a response with any status is not an error", arguments: [400, 401, 403, 404, 413, 500, 503])
    func statuses(status: Int) async throws {
        let server = try ScriptedServer { request, reply in
            if request.method == "OPTIONS" { return try reply.respond(204) }
            _ = try reply.readContent()
            try reply.respond(status, ["X-Reason": "because"], "no")
        }
        let fixture = try SessionFixture()
        let session = fixture.session()
        let request = try SessionFixture.request(server.url + "/a", "POST")
        let (data, response) = try await session.upload(for: request, from: Data("content".utf8))
        #expect((response as? HTTPURLResponse)?.statusCode == status)
        #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Reason") == "because")
        #expect(String(decoding: data, as: UTF8.self) == "no")
    }

    @Test("the task reports a server that cannot be reached")
    func unreachable() async throws {
        let port = try ScriptedServer { _, reply in reply.reset() }.port
        let fixture = try SessionFixture()
        // With these delays, a client that tried again would exceed the test's time limit.
        let session = fixture.session { $0.retry.delays = [.seconds(100_000)] }
        let request = try SessionFixture.request("http://127.0.0.1:\(port)/", "POST")
        await #expect { try await session.upload(for: request, from: Data([1])) } throws: { error in
            let error = error as? URLError
            let codes: [URLError.Code] = [.cannotConnectToHost, .networkConnectionLost]
            return codes.contains(error?.code ?? .unknown) && error?.uploadTaskResumeData == nil
        }
    }

    @Test("an upload of a missing file fails")
    func missing() async throws {
        let fixture = try SessionFixture()
        let answer = SessionAnswer<Data>()
        let request = try SessionFixture.request("http://127.0.0.1:9/", "POST")
        let task = fixture.session().uploadTask(
            with: request, fromFile: URL(fileURLWithPath: "/nowhere/at/all"), completionHandler: answer.handler)
        task.resume()
        #expect(try answer.value().urlError?.code == .fileDoesNotExist)
    }

    @Test("after a timeout of the request or of the resource, the upload fails with resume data")
    func timeouts() async throws {
        let bytes = Data(Payload.bytes(20_000_000))
        for isOfRequest in [true, false] {
            let limit = 0.5
            // There is resume data only after the announcement, so the announcement must arrive before the timeout.
            let error = try await Pace.within(
                .seconds(limit), until: { $0?.uploadTaskResumeData != nil },
                { pace in
                    let upload = ScriptedUpload()
                    let server = try ScriptedServer { request, reply in
                        if request.method == "POST" {
                            try reply.interim(104, upload.announcement)
                            pace.step()
                            try upload.receiveContent(reply, atMost: 10_000)
                        }
                        reply.stall()
                    }
                    var request = try SessionFixture.request(server.url + "/a", "POST")
                    request.timeoutInterval = isOfRequest ? limit : 60
                    let configuration = URLSessionConfiguration.default
                    if !isOfRequest { configuration.timeoutIntervalForResource = limit }
                    let answer = SessionAnswer<Data>()
                    let fixture = try SessionFixture()
                    let session = fixture.session(configuration: configuration)
                    session.uploadTask(with: request, from: bytes, completionHandler: answer.handler).resume()
                    return try answer.value().urlError
                })
            #expect(error?.code == .timedOut && error?.uploadTaskResumeData != nil)
        }
    }

    @Test("several uploads run at the same time, each with its own events")
    func several() async throws {
        try await withServer { server in
            let fixture = try SessionFixture()
            let recorder = SessionRecorder()
            let session = fixture.session(recorder)
            var tasks: [(URLSessionUploadTask, String, [UInt8])] = []
            for number in 0..<6 {
                let bytes = Payload.bytes(800_000 + number, seed: UInt64(number + 1))
                let request = try SessionFixture.request(server.url("/files/\(number).bin"), "PUT")
                let file = try fixture.file(bytes, "source\(number)")
                tasks.append((session.uploadTask(with: request, fromFile: file), "\(number).bin", bytes))
            }
            #expect(Set(tasks.map(\.0.taskIdentifier)).count == 6)
            for (task, _, _) in tasks { task.resume() }
            for (task, name, bytes) in tasks {
                #expect(recorder.succeeds(task))
                expectSame(server.published(name) ?? [], bytes)
            }
        }
    }
}
