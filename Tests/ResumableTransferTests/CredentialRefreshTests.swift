import SystemCalls
import TestSupport
import Testing

@testable import ResumableTransfer

@Suite("The refresh of credentials", .timeLimit(.minutes(15)))
struct CredentialRefreshTests {
    private struct Failure: Error {}

    private let response = TransferResponse(status: 401, fields: [:])

    @Test("transfers that wait at the same time share one refresh, and a later 401 to an older request causes none")
    func shared() async throws {
        let calls = Monitor(0)
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let refresh = CredentialRefresh { _ in
            calls.withLock { $0 += 1 }
            for await _ in stream { break }
        }
        let waits = try (0..<50).map { _ in try #require(refresh.join(rejected: 0, response)) }
        continuation.yield()
        for wait in waits { #expect(try await wait.outcome()?.get() != nil) }
        #expect(calls.withLock { $0 } == 1)
        #expect(refresh.join(rejected: 0, response) == nil)
        #expect(refresh.generation == 1)
        continuation.yield()
        #expect(try await refresh.join(rejected: 1, response)?.outcome()?.get() != nil)
        #expect(calls.withLock { $0 } == 2)
    }

    @Test("a failed refresh fails for all transfers that wait, and the next 401 starts another one")
    func failed() async throws {
        let calls = Monitor(0)
        let refresh = CredentialRefresh { _ in
            let number = calls.withLock { calls in
                calls += 1
                return calls
            }
            if number == 1 { throw Failure() }
        }
        let wait = try #require(refresh.join(rejected: 0, response))
        guard case .failure(let error)? = await wait.outcome() else {
            Issue.record("the refresh did not fail")
            return
        }
        #expect(error is Failure)
        #expect(refresh.generation == 0)
        #expect(try await refresh.join(rejected: 0, response)?.outcome()?.get() != nil)
    }

    @Test("a transfer can stop waiting, and the refresh continues for the other transfers")
    func leaving() async throws {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let refresh = CredentialRefresh { _ in for await _ in stream { break } }
        let first = try #require(refresh.join(rejected: 0, response))
        let second = try #require(refresh.join(rejected: 0, response))
        first.leave()
        if case .some = await first.outcome() { Issue.record("a transfer that stopped waiting got the outcome") }
        continuation.yield()
        #expect(try await second.outcome()?.get() != nil)
    }
}
