import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import Testing

@Suite("Client: log entries", .timeLimit(.minutes(2)))
struct LogEntryTests {
    private let bytes = sampleBytes(300_000)
    private let request = TransferRequest("https://files.example/a")

    @Test("a transfer that waits for its turn is logged")
    func waiting() async throws {
        let entries = Monitor<[TransferLogEntry]>([])
        let (started, isStarted) = AsyncStream.makeStream(of: Void.self)
        let fixture = try MockFixture {
            $0.maxTransfers = 1
            $0.onLogEntry = { entry in entries.withLock { $0.append(entry) } }
        } answer: { _ in
            isStarted.finish()
            try await Task.sleep(for: .seconds(3600))
            return MockResponse(.ok)
        }
        let first = fixture.client.download(request, to: .temporary)
        first.start()
        for await _ in started {}
        let second = fixture.client.download(request, to: .temporary)
        for await event in second.events() { if case .waiting = event { break } }
        _ = await second.pause()
        let found = entries.withLock { $0 }.filter { $0.message.contains("waits for its turn") }
        #expect(found.map(\.level) == [.info] && found.first?.metadata["kind"] == "download")
        await fixture.client.shutDown()
    }

    @Test("a download to memory that continues after an interruption is logged", arguments: [true, false])
    func resumption(isStream: Bool) async throws {
        let entries = Monitor<[TransferLogEntry]>([])
        let file = MockFile(bytes: bytes)
        let fixture = try MockFixture {
            $0.onLogEntry = { entry in entries.withLock { $0.append(entry) } }
        } answer: {
            file.response(to: $0, cutAt: $0.number == 1 ? 100_000 : nil)
        }
        if isStream {
            for try await _ in fixture.client.stream(request) {}
        } else {
            _ = try await fixture.client.data(for: request, maxSize: 300_000)
        }
        let found = entries.withLock { $0 }.filter { $0.message.contains("resumes") }
        #expect(found.map { $0.metadata["position"] } == ["100000"])
    }

    @Test("log entries, metrics and records have the id of their transfer, which a resumption keeps")
    func identity() async throws {
        let entries = Monitor<[TransferLogEntry]>([])
        let records = Monitor<[TransferRecord]>([])
        let metrics = Monitor<[RequestMetrics]>([])
        let file = MockFile(bytes: bytes)
        let fixture = try MockFixture {
            $0.retry.delays = [.seconds(3600)]
            $0.onLogEntry = { entry in entries.withLock { $0.append(entry) } }
            $0.onMessage = { record in records.withLock { $0.append(record) } }
            $0.onMetrics = { collected in metrics.withLock { $0.append(collected) } }
        } answer: {
            file.response(to: $0, cutAt: $0.number == 1 ? 100_000 : nil)
        }
        let first = fixture.client.download(request, to: .temporary)
        for await event in first.events() { if case .interrupted = event { break } }
        let data = try #require(await first.pause())
        let second = try fixture.client.resumeDownload(data)
        _ = try await second.value()
        let stream = fixture.client.stream(request)
        for try await _ in stream {}
        #expect(first.id == second.id && first.id != stream.id)
        let ids = [first.id, stream.id]
        #expect(Set(entries.withLock { $0 }.compactMap { $0.metadata["transfer"] }) == Set(ids.map(\.uuidString)))
        #expect(
            records.withLock { $0 }.map(\.transferID) == Array(repeating: first.id, count: 4) + [stream.id, stream.id])
        #expect(metrics.withLock { $0 }.map(\.transferID) == [first.id, first.id, stream.id])
    }
}
