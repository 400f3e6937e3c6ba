import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import Testing

@Suite("Client: shutting down", .timeLimit(.minutes(1)))
struct ShutDownTests {
    @Test("shutting down pauses all transfers at the same time")
    func simultaneous() async throws {
        let (stopped, isStopped) = AsyncStream.makeStream(of: Void.self)
        let (started, isStarted) = AsyncStream.makeStream(of: Void.self)
        let calls = Monitor(0)
        let fixture = try MockFixture {
            // The first call returns only after the second one was canceled.
            $0.authorize = { _ in
                let isFirst = calls.withLock { count in
                    count += 1
                    return count == 1
                }
                isStarted.yield()
                if isFirst {
                    await Task.detached { for await _ in stopped {} }.value
                } else {
                    try? await Task.sleep(for: .seconds(3600))
                    isStopped.finish()
                }
                throw CancellationError()
            }
        } answer: { _ in
            MockResponse(.ok)
        }
        var starts = started.makeAsyncIterator()
        let transfers = (1...2).map {
            fixture.client.download(TransferRequest("https://files.example/\($0)"), to: .temporary)
        }
        for transfer in transfers {
            transfer.start()
            await starts.next()
        }
        await fixture.client.shutDown()
        for transfer in transfers {
            #expect(await transferError { _ = try await transfer.value() }?.code == .paused)
        }
    }
}
