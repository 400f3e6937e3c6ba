import Foundation
import HTTPSemantics
import ResumableTransfer
import SystemCalls
import TestSupport
import Testing

@Suite("Client: shutting down", .timeLimit(.minutes(5)))
struct ShutDownTests {
    @Test("a program that ends while its client starts does not crash")
    func exiting() throws {
        let directory = try TemporaryDirectory()
        let program = try ExecutableLocation.beside("TransferRecipes")
        // Without OPENSSL_INIT_NO_ATEXIT one of 150 runs crashes.
        for _ in 0..<300 {
            let process = try ChildProcess(program, ["store-sweep", directory.path])
            try #require(try process.awaitEnding() == .exited(0), "\(process.errorOutput)")
        }
    }

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
