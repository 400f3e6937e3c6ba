import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@Suite("Client: many transfers", .blocking)
struct ManyTransfersTests {
    private let file = ScriptedFile(bytes: Payload.bytes(50_000))

    /// A server whose scripts wait until the gate is open.
    private func gatedServer(_ gate: Monitor<Bool>) throws -> ScriptedServer {
        let file = file
        return try ScriptedServer { request, reply in
            gate.waitForever { $0 ? () : nil }
            try file.serve(request, reply)
        }
    }

    private func download(_ fixture: UploadFixture, _ server: ScriptedServer, _ name: String) -> Download {
        fixture.client.download(
            TransferRequest(server.url + "/" + name), to: .file(fixture.directory.path + "/" + name))
    }

    @Test("at most the maximum number of transfers runs, in order of priority, then of their start")
    func order() async throws {
        let gate = Monitor(false)
        let server = try gatedServer(gate)
        let fixture = try UploadFixture { $0.maxTransfers = 1 }
        let priorities: [(String, TaskPriority)] = [
            ("first", .low), ("b", .medium), ("d", .low), ("a", .high), ("c", .medium), ("e", .low),
        ]
        let downloads = priorities.map { name, priority in
            let download = download(fixture, server, name)
            download.priority = priority
            download.start()
            return download
        }
        #expect(server.awaitRequests(1))
        #expect(downloads.map(\.progress.isWaiting).filter { $0 }.count <= 5)
        // This transfer has waited with a lower priority until now.
        downloads[5].priority = .high
        gate.raise()
        for download in downloads { _ = try await download.value() }
        #expect(server.requests.map(\.target) == ["/first", "/a", "/e", "/b", "/c", "/d"])
        #expect(server.maxConcurrentScripts == 1)
    }

    @Test("several transfers run at the same time, and never more than the maximum")
    func limit() async throws {
        let file = file
        let server = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try UploadFixture { $0.maxTransfers = 3 }
        let downloads = (0..<40).map { download(fixture, server, "\($0)") }
        for download in downloads { download.start() }
        for download in downloads { _ = try await download.value() }
        #expect(server.maxConcurrentScripts <= 3 && server.requests.count == 40)
        #expect(fixture.client.transfers.isEmpty)
    }

    @Test("a waiting transfer reports that it waits, and can be paused and canceled immediately")
    func stopping() async throws {
        let gate = Monitor(false)
        let server = try gatedServer(gate)
        let fixture = try UploadFixture { $0.maxTransfers = 1 }
        let running = download(fixture, server, "running")
        running.start()
        #expect(server.awaitRequests(1))
        let paused = download(fixture, server, "paused")
        let canceled = download(fixture, server, "cancelled")
        for waiting in [paused, canceled] {
            for await event in waiting.events() {
                guard case .waiting = event else {
                    Issue.record("the first event is \(event)")
                    break
                }
                #expect(waiting.progress.isWaiting && waiting.progress.throughput == 0)
                break
            }
        }
        #expect(fixture.client.transfers.count == 3)
        _ = await paused.pause()
        await canceled.cancel()
        #expect(await paused.failure()?.code == .paused)
        #expect(await canceled.failure()?.code == .cancelled)
        #expect(fixture.client.transfers.count == 1 && server.requests.count == 1)
        gate.raise()
        _ = try await running.value()
        #expect(server.requests.count == 1)
    }

    @Test("shutting the client down also ends transfers that wait, and none of them sends a request")
    func shutDown() async throws {
        let gate = Monitor(false)
        let server = try gatedServer(gate)
        let fixture = try UploadFixture { $0.maxTransfers = 1 }
        let downloads = (0..<20).map { download(fixture, server, "\($0)") }
        for download in downloads { download.start() }
        #expect(server.awaitRequests(1))
        await fixture.client.shutDown()
        for download in downloads { #expect(await download.failure()?.code == .paused) }
        #expect(server.requests.count == 1)
        gate.raise()
    }

    @Test("the events of all transfers arrive in one stream, which ends with the client")
    func events() async throws {
        let file = file
        let server = try ScriptedServer { try file.serve($0, $1) }
        let fixture = try UploadFixture()
        let stream = fixture.client.events()
        let downloads = (0..<10).map { download(fixture, server, "\($0)") }
        for download in downloads { _ = try await download.value() }
        await fixture.client.shutDown()
        var names: [ObjectIdentifier: [String]] = [:]
        for await (transfer, event) in stream {
            let name: String? =
                switch event {
                case .started: "started"
                case .completed: "completed"
                case .failed: "failed"
                default: nil
                }
            if let name { names[ObjectIdentifier(transfer), default: []].append(name) }
        }
        #expect(names.count == 10)
        for download in downloads { #expect(names[ObjectIdentifier(download)] == ["started", "completed"]) }
        for await _ in fixture.client.events() { Issue.record("an event after the end of the client") }
    }

    @Test("the caller decides about each retry: the caller's delay replaces the proposed delay, or the transfer ends")
    func retryDecision() async throws {
        let server = try ScriptedServer { try $1.respond(503, [:], "busy") }
        let calls = Monitor<[(TransferError.Code, Int, Duration)]>([])
        let fixture = try UploadFixture {
            $0.retry.delays = [.seconds(3600)]
            $0.shouldRetry = { error, attempt, delay in
                calls.withLock { $0.append((error.code, attempt, delay)) }
                return attempt < 3 ? .retry(after: .milliseconds(-1)) : .stop
            }
        }
        let error = await (try fixture.download(server.url)).failure()
        #expect(error?.code == .serverUnavailable && error?.canRetry == true)
        #expect(server.requests.count == 3)
        let seen = calls.withLock { $0 }
        #expect(seen.map(\.1) == [1, 2, 3] && seen.allSatisfy { $0.0 == .serverUnavailable })
        #expect(seen.allSatisfy { $0.2 > .seconds(60) })
    }

    @Test("a transfer that waits for the caller's decision can be paused")
    func pausedDecision() async throws {
        let (decisionCalls, decisionCalled) = AsyncStream<Void>.makeStream()
        let server = try ScriptedServer { try $1.respond(503) }
        let fixture = try UploadFixture {
            $0.shouldRetry = { _, _, _ in
                decisionCalled.yield()
                try? await Task.sleep(for: .seconds(3600))
                return .stop
            }
        }
        let download = try fixture.download(server.url)
        download.start()
        for await _ in decisionCalls { break }
        #expect(download.progress.isWaiting)
        _ = await download.pause()
        #expect(await download.failure()?.code == .paused)
    }

    @Test("an upload that is resumed counts only its own bytes as transferred")
    func throughput() async throws {
        let bytes = Payload.bytes(4_000_000)
        let model = ScriptedUpload()
        let counter = Counter()
        let server = try ScriptedServer { request, reply in
            if request.method == "PATCH", counter.next() == 1 {
                try model.receiveContent(reply, atMost: 3_000_000)
                return reply.reset()
            }
            try model.serve(request, reply)
        }
        let fixture = try UploadFixture {
            $0.creation = .careful
            $0.shouldRetry = { _, _, _ in .stop }
        }
        let request = TransferRequest(server.url + "/target", method: .put)
        let first = fixture.client.upload(request, from: DataSource(Data(bytes)))
        let data = try #require(await first.failure()?.resumeData)
        let second = try fixture.client.resumeUpload(data, from: DataSource(Data(bytes)))
        let result = try await second.value()
        #expect(result.sent == 1_000_000 && second.progress.transferred == 1_000_000)
        #expect(second.progress.completedUnitCount == 4_000_000 && second.progress.estimatedTimeRemaining == .zero)
    }
}
