import SystemCalls
import Testing

@testable import ResumableTransfer

@Suite(.timeLimit(.minutes(15))) struct TransferControlTests {
    private typealias Control = TransferControl<Int>

    @Test("the work runs once and every caller gets its result")
    func result() async throws {
        let control = Control()
        #expect(control.begin())
        #expect(!control.begin())
        let waiters = (0..<5).map { _ in Task { try await control.value() } }
        control.run { .success(7) }
        for waiter in waiters { #expect(try await waiter.value == 7) }
        #expect(try await control.value() == 7)
    }

    @Test("a stop request interrupts what the work waits for, whether it came before or after")
    func interruption() async {
        for isEarly in [true, false] {
            let control = Control()
            if isEarly { control.requestStop(.pause) }
            control.run {
                await control.sleep(for: .seconds(3600))
                return .failure(TransferError(.paused, ""))
            }
            if !isEarly { control.requestStop(.pause) }
            guard case .failure(let error) = await control.awaitEnd() else {
                Issue.record("it continued")
                return
            }
            #expect(error.code == .paused)
        }
    }

    @Test("cancelling the task that waits pauses the transfer")
    func cancellation() async {
        let control = Control()
        control.run {
            await control.sleep(for: .seconds(3600))
            return .failure(TransferError(control.stop == .pause ? .paused : .internalFailure, ""))
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

    @Test("a cancellation takes the place of a pause, not the reverse")
    func precedence() {
        let control = Control()
        control.requestStop(.pause)
        control.requestStop(.cancel(deleting: true))
        control.requestStop(.pause)
        #expect(control.stop == .cancel(deleting: true))
    }
}
