import Foundation
import HTTPSemantics
import SystemCalls
import Testing

@testable import HTTPTransport
@testable import ResumableTransfer

@Suite("Client: the mock transport") struct MockTransportTests {
    private let bytes = sampleBytes(300_000)

    @Test("the example of the documentation: a download continues after a cut")
    func documented() async throws {
        let transport = MockTransport { request in
            guard request.fields["Range"] == "bytes=5-" else {
                return MockResponse(.ok, ["ETag": "\"a\""], content: "hello, world", cutAt: 5)
            }
            let fields: Fields = ["ETag": "\"a\"", "Content-Range": "bytes 5-11/12"]
            return MockResponse(.partialContent, fields, content: ", world")
        }
        var configuration = TransferClient.Configuration()
        configuration.retry.delays = [.zero]
        let client = TransferClient(configuration, transport: transport)
        let (data, response) = try await client.data(
            for: TransferRequest("https://files.example/a"), maxSize: 100)
        #expect(data == Data("hello, world".utf8))
        #expect(response.status == .partialContent)
    }

    @Test("a download to a file is completed although the connection is lost after each tenth of its bytes")
    func download() async throws {
        let file = MockFile(bytes: bytes)
        let fixture = try MockFixture { file.response(to: $0, cutAt: 30_000) }
        let path = fixture.directory.path + "/a"
        let download = fixture.client.download(from: "https://files.example/a", to: path)
        let result = try await download.value()
        #expect(result.requests == 10 && result.size == 300_000)
        #expect(try Data(contentsOf: URL(filePath: path)) == Data(bytes))
        let starts = fixture.requests.map { $0.fields["Range"] ?? "" }
        #expect(starts == [""] + (1...9).map { "bytes=\($0 * 30_000)-" })
        #expect(download.metrics.map(\.received) == Array(repeating: 30_000, count: 10))
        #expect(download.metrics.allSatisfy { $0.method == .get && $0.httpVersion == "HTTP/1.1" })
    }

    @Test("download(from:to:) accepts URLs, and a download from a URL that is neither http nor https fails")
    func urls() async throws {
        let file = MockFile(bytes: bytes)
        let fixture = try MockFixture { file.response(to: $0) }
        let destination = URL(filePath: fixture.directory.path + "/b c")
        let source = try #require(URL(string: "https://files.example/b%20c"))
        let result = try await fixture.client.download(from: source, to: destination, fields: ["X-Tenant": "7"]).value()
        #expect(result.path == destination.path && fixture.requests.first?.fields["X-Tenant"] == "7")
        let error = await transferError {
            _ = try await fixture.client.download(from: "ftp://files.example/", to: destination.path).value()
        }
        #expect(error?.code == .invalidRequest)
    }

    @Test("an upload waits for the 104, loses its connection twice, and sends the remaining bytes each time")
    func upload() async throws {
        let server = MockUpload()
        let fixture = try MockFixture {
            $0.interimResponseTimeout = .seconds(600)
        } answer: { request in
            try await server.response(to: request, cutAt: request.number <= 3 ? 100_000 : nil)
        }
        let upload = fixture.client.upload(
            TransferRequest("https://files.example/a", method: .put), from: Data(bytes))
        let result = try await upload.value()
        #expect(result.status == .created && server.bytes == bytes)
        #expect(fixture.requests.map(\.method) == [.put, .head, .patch, .head, .patch])
        #expect(fixture.requests.map(\.number) == [1, 2, 3, 4, 5])
        #expect(upload.metrics.map(\.sent) == [100_000, 0, 100_000, 0, 100_000])
        #expect(upload.metrics[1].uri == "https://files.example/(hidden)")
    }

    @Test("if no 104 arrives, the content is sent after the time of the setting `interimResponseTimeout`")
    func gate() async throws {
        let fixture = try MockFixture {
            $0.interimResponseTimeout = .milliseconds(20)
        } answer: { request in
            MockResponse(try await request.readContent() == [1, 2, 3] ? .ok : .badRequest)
        }
        let upload = fixture.client.upload(TransferRequest("https://files.example/a"), from: Data([1, 2, 3]))
        #expect(try await upload.value().status == .ok)
    }

    @Test(
        "every failure of the mock transport causes the error code of the same failure of a real connection",
        arguments: MockFailure.allCases)
    func failures(failure: MockFailure) async throws {
        let fixture = try MockFixture {
            $0.retry.maxRetriesWithoutProgress = 1
        } answer: { _ in
            throw failure
        }
        let error = await transferError {
            _ = try await fixture.client.data(for: TransferRequest("https://files.example/a"), maxSize: 1)
        }
        let codes: [MockFailure: TransferError.Code] = [
            .hostNotFound: .hostNotFound, .cannotConnect: .cannotConnect, .insecureConnection: .insecureConnection,
            .connectionLost: .connectionLost, .timedOut: .timedOut,
        ]
        #expect(error?.code == codes[failure])
        #expect(fixture.requests.count == (failure == .insecureConnection ? 1 : 2))
    }

    @Test("scripted responses are sent in order, and interim responses are reported")
    func script() async throws {
        let client = TransferClient(
            transport: MockTransport(responses: [
                MockResponse(.notFound, content: "none"), MockResponse(.ok, content: "one"),
            ]))
        let request = TransferRequest("https://files.example/a")
        let error = await transferError { _ = try await client.data(for: request, maxSize: 10) }
        #expect(error?.code == .refused && error?.response?.content == Array("none".utf8))
        #expect(try await client.data(for: request, maxSize: 10).data == Data("one".utf8))
        let fixture = try MockFixture { request in
            try request.sendInterim(103, ["Link": "</x>"])
            return MockResponse(.ok)
        }
        let upload = fixture.client.upload(request, from: Data())
        var interim: [Status] = []
        for await event in upload.events() { if case .informational(let status, _) = event { interim.append(status) } }
        #expect(interim == [103])
    }

    @Test("a 412 has a code of its own, for an upload that the target rejects and for a request that is refused")
    func precondition() async throws {
        let request = TransferRequest("https://files.example/a", method: .put, fields: ["If-None-Match": "*"])
        for fields in [["Upload-Complete": "?1"], [:]] as [Fields] {
            let client = TransferClient(
                transport: MockTransport(responses: [MockResponse(.preconditionFailed, fields)]))
            let error = await transferError { _ = try await client.upload(request, from: Data([1])).value() }
            #expect(error?.code == .preconditionFailed && error?.status == 412 && error?.canRetry == false)
        }
    }

    @Test("a pause cancels the closure of the mock transport, and a client that was shut down starts no request")
    func cancellation() async throws {
        let (started, isStarted) = AsyncStream.makeStream(of: Void.self)
        let (canceled, isCanceled) = AsyncStream.makeStream(of: Void.self)
        let fixture = try MockFixture { _ in
            isStarted.finish()
            do {
                try await Task.sleep(for: .seconds(3600))
            } catch {
                isCanceled.finish()
            }
            return MockResponse(.ok)
        }
        let download = fixture.client.download(
            from: "https://files.example/a", to: fixture.directory.path + "/a")
        download.start()
        for await _ in started {}
        #expect(await download.pause() == nil)
        for await _ in canceled {}
        await fixture.client.shutDown()
        let error = await transferError {
            _ = try await fixture.client.data(for: TransferRequest("https://files.example/a"), maxSize: 1)
        }
        #expect(error?.code == .shutDown && fixture.requests.count == 1)
    }

    @Test(
        "the configured closure receives the metrics of each request; the path of an upload resource is hidden")
    func metrics() async throws {
        let collected = Monitor<[RequestMetrics]>([])
        let server = MockUpload()
        let fixture = try MockFixture {
            $0.onMetrics = { metrics in collected.withLock { $0.append(metrics) } }
        } answer: {
            try await server.response(to: $0, cutAt: $0.number == 1 ? 10 : nil)
        }
        let upload = fixture.client.upload(
            TransferRequest("https://files.example/a?key=secret", method: .put), from: Data(bytes))
        _ = try await upload.value()
        #expect(collected.withLock { $0 } == upload.metrics)
        #expect(upload.metrics.map(\.status) == [nil, .noContent, .created])
        let text = "\(upload.metrics)"
        #expect(!text.contains("secret") && !text.contains("/u/1"))
        #expect(upload.metrics[0].requestEnd == nil && upload.metrics[2].requestEnd != nil)
    }

    @Test("progress is reported about ten times a second, as for a request to a server")
    func reports() async throws {
        let bytes = sampleBytes(3_000_000)
        let engine = MockEngine(MockTransport { _ in MockResponse(.ok, content: bytes) })
        let start = ContinuousClock.now
        let exchange = engine.start(
            TransportRequest(
                uri: "https://files.example/a", method: .get, fields: [:], stallTimeout: nil,
                settings: TransportSettings(TransferClient.Configuration(), proxy: nil, hasCredentials: false),
                receive: { _ in .collect(limit: 4 << 20, within: .seconds(600)) }))
        var counts: [Int64] = []
        for await event in exchange.events { if case .received(let count) = event { counts.append(count) } }
        #expect(await exchange.result().received == 3_000_000 && counts.last == 3_000_000)
        // One report at the beginning, and one at the end.
        #expect(counts.count <= 2 + Int(start.duration(to: .now) / .milliseconds(100)), "\(counts.count)")
    }

    @Test("progress is also reported while a request waits after its last bytes", .timeLimit(.minutes(2)))
    func reportsDuringWaits() async throws {
        let fixture = try MockFixture { request in
            _ = try await request.readContent(atMost: 100_000)
            _ = try await request.readContent(atMost: 100_000)
            try await Task.sleep(for: .seconds(3600))
            return MockResponse(.ok)
        }
        let upload = fixture.client.upload(TransferRequest("https://files.example/a"), from: Data(bytes))
        for await event in upload.events() { if case .progress(200_000, _, _) = event { break } }
        _ = await upload.pause()
    }
}
