import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls
import Testing

@testable import ResumableTransfer

@Suite("Client: the upload of a short file to a server that announces uploads")
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

    /// A client whose server has announced the upload resource of an earlier upload, and an upload that has not begun.
    private func prepare(
        _ store: Store, answer: @escaping @Sendable (MockRequest) async throws -> MockResponse
    ) async throws -> (fixture: MockFixture, upload: Upload) {
        let fixture = try MockFixture { request in
            try await request.number == 1 ? MockUpload().response(to: request) : answer(request)
        }
        let path = FilePath(fixture.directory.path + "/file")
        try Data(Self.content).write(to: path.fileURL)
        let source = try FileSource(path)
        _ = try await fixture.client.upload(Self.request, from: Data([1])).value()
        return (fixture, fixture.client.upload(Self.request, from: source, store: store))
    }

    private func methods(_ fixture: MockFixture) -> [String] { fixture.requests.dropFirst().map(\.method.rawValue) }

    @Test("the URL is saved before content is sent, and nothing else is saved")
    func completed() async throws {
        let (store, server) = (Store(), MockUpload())
        let (fixture, upload) = try await prepare(store) { request in
            let response = try await server.response(to: request)
            #expect(store.saved.withLock { $0.count } == 1)
            return response
        }
        let result = try await upload.value()
        #expect(result.status == .created && result.acknowledged == 100_000 && server.bytes == Self.content)
        let saved = store.saved.withLock { $0 }
        #expect(saved.count == 1 && saved.first?.position == 0 && saved.first?.path?.hasSuffix("/file") == true)
        #expect(methods(fixture) == ["POST"])
    }

    @Test("an observer in the current task receives the same events as a stream, before the result")
    func observed() async throws {
        let (store, server) = (Store(), MockUpload())
        let (fixture, upload) = try await prepare(store) { try await server.response(to: $0) }
        let observed = Monitor<[TransferEvent]>([])
        let result = try await upload.outcome { event in observed.withLock { $0.append(event) } }
        #expect(result.status == .created && methods(fixture) == ["POST"])
        let events = observed.withLock { $0 }
        guard case .started(total: 100_000)? = events.first, case .completed? = events.last else {
            Issue.record("unexpected events: \(events)")
            return
        }
        let kinds = events.map(\.kind)
        #expect(kinds.filter { $0 == .checkpoint }.count == 1 && kinds.filter { $0 == .end }.count == 1)
        #expect(
            events.contains { if case .progress(100_000, 100_000, 100_000) = $0 { true } else { false } })
        // The transfer runs once.
        #expect(try await upload.outcome { _ in Issue.record("the transfer has ended") }.status == .created)
        #expect(methods(fixture) == ["POST"])
    }

    @Test("after a lost connection only the remaining bytes are sent", arguments: [0, 1, 60_000, 100_000])
    func interrupted(at count: Int) async throws {
        let (store, server) = (Store(), MockUpload())
        let (fixture, upload) = try await prepare(store) { request in
            try await server.response(to: request, cutAt: request.method == .post ? count : nil)
        }
        let result = try await upload.value()
        #expect(result.status?.isSuccessful == true && server.bytes == Self.content)
        #expect(result.sent == 100_000 && result.requests == fixture.requests.count - 1)
        #expect(methods(fixture) == ["POST", "HEAD", "PATCH"])
    }

    @Test("a creation that the server has refused for now is repeated, after the delay that the server requests")
    func refused() async throws {
        let (store, server) = (Store(), MockUpload())
        let (fixture, upload) = try await prepare(store) { request in
            if request.number == 2 { return MockResponse(.tooManyRequests, ["Retry-After": "1"]) }
            return try await server.response(to: request)
        }
        var interruptions: [Duration] = []
        for await event in upload.events() {
            if case .interrupted(_, let delay) = event { interruptions.append(delay) }
        }
        #expect(interruptions == [.seconds(1)] && server.bytes == Self.content)
        #expect(methods(fixture) == ["POST", "POST"])
    }

    @Test("a rejection is the result, without another request")
    func rejected() async throws {
        let (fixture, upload) = try await prepare(Store()) { _ in MockResponse(.forbidden) }
        #expect(await transferError { _ = try await upload.value() }?.status == .forbidden)
        #expect(methods(fixture) == ["POST"])
    }

    @Test(
        "without a 104 the content is sent after the timeout, and a lost response is not followed by another creation")
    func unannounced() async throws {
        let (store, received) = (Store(), Monitor(0))
        let (fixture, upload) = try await prepare(store) { request in
            let count = try await request.readContent().count
            received.withLock { $0 = count }
            throw MockFailure.connectionLost
        }
        #expect(await transferError { _ = try await upload.value() }?.code == .connectionLost)
        #expect(received.withLock { $0 } == 100_000 && store.saved.withLock { $0.isEmpty })
        #expect(methods(fixture) == ["POST"])
    }

    @Test("a stopped upload ends as paused, and can be resumed")
    func stopped() async throws {
        let (store, running) = (Store(), Monitor<Upload?>(nil))
        let (fixture, upload) = try await prepare(store) { request in
            try request.sendInterim(
                .uploadResumptionSupported, ["Upload-Draft-Interop-Version": "8", "Location": "/u/1"])
            _ = try await request.readContent(atMost: 1000)
            running.withLock { $0 }?.requestPause()
            return MockResponse(.created, ["Upload-Complete": "?1"])
        }
        running.withLock { $0 = upload }
        let error = await transferError { _ = try await upload.outcome { _ in } }
        #expect(error?.code == .paused && error?.resumeData != nil)
        #expect(methods(fixture) == ["POST"])
    }
}
