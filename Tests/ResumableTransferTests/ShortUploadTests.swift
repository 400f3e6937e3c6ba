import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls
import Testing

@testable import ResumableTransfer

@Suite("Client: the upload of a short file in one request")
struct ShortUploadTests {
    /// Keeps what is saved.
    private final class Store: CheckpointStore {
        let saved = Monitor<[ResumeData]>([])

        func save(_ data: ResumeData, sent: Int64?) async {
            saved.withLock { $0.append(data) }
        }
    }

    private static let content = sampleBytes(100_000)
    private static let request = TransferRequest("https://files.example/c/", method: .post)

    /// A client whose server has announced the upload resource of an earlier upload, and a short upload that has begun.
    private func begin(
        answer: @escaping @Sendable (MockRequest) async throws -> MockResponse
    ) async throws -> (fixture: MockFixture, upload: ShortUpload) {
        let fixture = try MockFixture { request in
            try await request.number == 1 ? MockUpload().response(to: request) : answer(request)
        }
        let path = FilePath(fixture.directory.path + "/file")
        try Data(Self.content).write(to: path.fileURL)
        let source = try FileSource(path)
        #expect(await fixture.client.beginShortUpload(Self.request, from: source) == nil)
        _ = try await fixture.client.upload(Self.request, from: Data([1])).value()
        return (fixture, try #require(await fixture.client.beginShortUpload(Self.request, from: source)))
    }

    private func methods(_ fixture: MockFixture) -> [String] { fixture.requests.dropFirst().map(\.method.rawValue) }

    @Test("the URL is saved before content is sent, and nothing else is saved")
    func completed() async throws {
        let (store, server) = (Store(), MockUpload())
        let (fixture, upload) = try await begin { request in
            let response = try await server.response(to: request)
            #expect(store.saved.withLock { $0.count } == 1)
            return response
        }
        guard case .completed(let result) = await upload.outcome(store: store) else {
            Issue.record("the upload is not complete")
            return
        }
        #expect(result.status == .created && result.acknowledged == 100_000 && server.bytes == Self.content)
        let saved = store.saved.withLock { $0 }
        #expect(saved.count == 1 && saved.first?.position == 0 && saved.first?.path?.hasSuffix("/file") == true)
        #expect(methods(fixture) == ["POST"])
    }

    @Test("after a lost connection a transfer sends only the remaining bytes", arguments: [0, 1, 60_000, 100_000])
    func interrupted(at count: Int) async throws {
        let (store, server) = (Store(), MockUpload())
        let (fixture, upload) = try await begin { request in
            try await server.response(to: request, cutAt: request.method == .post ? count : nil)
        }
        guard case .unfinished(let rest, false) = await upload.outcome(store: store) else {
            Issue.record("the upload is complete")
            return
        }
        let result = try await rest.value()
        #expect(result.status?.isSuccessful == true && server.bytes == Self.content)
        #expect(result.sent == 100_000 && result.requests == fixture.requests.count - 1)
        #expect(methods(fixture) == ["POST", "HEAD", "PATCH"])
    }

    @Test("a transfer repeats a creation that the server has refused for now, after the delay that the server requests")
    func refused() async throws {
        let (store, server) = (Store(), MockUpload())
        let (fixture, upload) = try await begin { request in
            if request.number == 2 { return MockResponse(.tooManyRequests, ["Retry-After": "1"]) }
            return try await server.response(to: request)
        }
        guard case .unfinished(let rest, false) = await upload.outcome(store: store) else {
            Issue.record("the upload is complete")
            return
        }
        var interruptions: [Duration] = []
        for await case .interrupted(_, let delay) in rest.events() { interruptions.append(delay) }
        #expect(interruptions == [.seconds(1)] && server.bytes == Self.content)
        #expect(methods(fixture) == ["POST", "POST"])
    }

    @Test("a rejection is the result of the transfer, without another request")
    func rejected() async throws {
        let (fixture, upload) = try await begin { _ in MockResponse(.forbidden) }
        guard case .unfinished(let rest, false) = await upload.outcome(store: Store()) else {
            Issue.record("the upload is complete")
            return
        }
        #expect(await transferError { _ = try await rest.value() }?.status == .forbidden)
        #expect(methods(fixture) == ["POST"])
    }

    @Test(
        "without a 104 the content is sent after the timeout, and a lost response is not followed by another creation")
    func unannounced() async throws {
        let (store, received) = (Store(), Monitor(0))
        let (fixture, upload) = try await begin { request in
            let count = try await request.readContent().count
            received.withLock { $0 = count }
            throw MockFailure.connectionLost
        }
        guard case .unfinished(let rest, false) = await upload.outcome(store: store) else {
            Issue.record("the upload is complete")
            return
        }
        #expect(await transferError { _ = try await rest.value() }?.code == .connectionLost)
        #expect(received.withLock { $0 } == 100_000 && store.saved.withLock { $0.isEmpty })
        #expect(methods(fixture) == ["POST"])
    }

    @Test("a canceled upload ends as a paused transfer, which can be resumed")
    func canceled() async throws {
        let (store, running) = (Store(), Monitor<ShortUpload?>(nil))
        let (fixture, upload) = try await begin { request in
            try request.sendInterim(
                .uploadResumptionSupported, ["Upload-Draft-Interop-Version": "8", "Location": "/u/1"])
            _ = try await request.readContent(atMost: 1000)
            while running.withLock({ $0 == nil }) { await Task.yield() }
            running.withLock { $0 }?.cancel()
            return MockResponse(.created, ["Upload-Complete": "?1"])
        }
        running.withLock { $0 = upload }
        guard case .unfinished(let rest, true) = await upload.outcome(store: store) else {
            Issue.record("the upload is complete")
            return
        }
        let error = await transferError { _ = try await rest.value() }
        #expect(error?.code == .paused && error?.resumeData != nil)
        #expect(methods(fixture) == ["POST"])
    }

    @Test("an upload of an empty or of a longer file, or of a client with other settings, needs a transfer")
    func unsuitable() async throws {
        let (fixture, _) = try await begin { _ in MockResponse(.created, ["Upload-Complete": "?1"]) }
        for count in [0, 256 << 10 + 1] {
            let path = FilePath(fixture.directory.path + "/\(count)")
            try Data(count: count).write(to: path.fileURL)
            let source = try FileSource(path)
            #expect(await fixture.client.beginShortUpload(Self.request, from: source) == nil)
        }
        let source = try FileSource(FilePath(fixture.directory.path + "/file"))
        let put = TransferRequest("https://files.example/a", method: .put)
        #expect(await fixture.client.beginShortUpload(put, from: source) == nil)
    }
}
