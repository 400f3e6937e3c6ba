import SystemCalls
import Testing

@testable import ResumableTransfer

@Suite(.timeLimit(.minutes(15))) struct TransferControlTests {
    private typealias Control = TransferControl<Int>

    @Test("the closure of a transfer runs once, and every caller receives its result")
    func result() async throws {
        let control = Control()
        #expect(control.begin())
        #expect(!control.begin())
        let waiters = (0..<5).map { _ in Task { try await control.value() } }
        Task { await control.perform { .success(7) } }
        for waiter in waiters { #expect(try await waiter.value == 7) }
        #expect(try await control.value() == 7)
    }

    @Test("a stop request interrupts a wait of the transfer, whether it was made before or during the wait")
    func interruption() async {
        for isEarly in [true, false] {
            let control = Control()
            if isEarly { control.requestStop(.pause) }
            Task {
                await control.perform {
                    await control.sleep(for: .seconds(3600))
                    return .failure(TransferError(.paused, ""))
                }
            }
            if !isEarly { control.requestStop(.pause) }
            guard case .failure(let error) = await control.awaitEnd() else {
                Issue.record("the wait was not interrupted")
                return
            }
            #expect(error.code == .paused)
        }
    }

    @Test("canceling the waiting task pauses the transfer")
    func cancellation() async {
        let control = Control()
        Task {
            await control.perform {
                await control.sleep(for: .seconds(3600))
                return .failure(TransferError(control.stop == .pause ? .paused : .internalFailure, ""))
            }
        }
        let waiter = Task { () async -> TransferError.Code? in
            do throws(TransferError) {
                _ = try await control.value()
                return nil
            } catch {
                return error.code
            }
        }
        await Task.yield()
        waiter.cancel()
        #expect(await waiter.value == .paused)
    }

    @Test("a cancellation replaces a pause, but a pause does not replace a cancellation")
    func precedence() {
        let control = Control()
        control.requestStop(.pause)
        control.requestStop(.cancel(deleting: true))
        control.requestStop(.pause)
        #expect(control.stop == .cancel(deleting: true))
    }

    @Test("a cancellation that deletes replaces one that does not, and is not replaced by it")
    func deletion() {
        let control = Control()
        control.requestStop(.cancel(deleting: false))
        control.requestStop(.pause)
        #expect(control.stop == .cancel(deleting: false))
        control.requestStop(.cancel(deleting: true))
        control.requestStop(.cancel(deleting: false))
        #expect(control.stop == .cancel(deleting: true))
    }
}
