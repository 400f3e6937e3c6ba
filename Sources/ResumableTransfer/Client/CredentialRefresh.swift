import SystemCalls

/// Refreshes the credentials of all transfers of a client, with at most one call of the caller's closure at a time.
final class CredentialRefresh: Sendable {
    typealias Outcome = Result<Void, any Error>

    private struct State {
        /// The number of successful refreshes.
        var generation = 0
        var running: Task<Void, Never>?
        var waiters: [AsyncStream<Outcome>.Continuation] = []
    }

    private let refresh: @Sendable (TransferResponse) async throws -> Void
    private let state = Monitor(State())

    init(_ refresh: @escaping @Sendable (TransferResponse) async throws -> Void) { self.refresh = refresh }

    /// The generation of the credentials that a request gets now.
    var generation: Int { state.withLock { $0.generation } }

    /// Starts a refresh, or joins the one that is running.
    /// - Parameters:
    ///   - generation: the generation of the credentials that the server rejected.
    ///   - response: the response with which the server rejected them.
    /// - Returns: the wait for the refresh; `nil` if a refresh has succeeded since the rejected request was sent.
    func join(rejected generation: Int, _ response: TransferResponse) -> CredentialWait? {
        state.withLock { state in
            guard generation == state.generation else { return nil }
            let (stream, continuation) = AsyncStream<Outcome>.makeStream()
            state.waiters.append(continuation)
            if state.running == nil {
                state.running = Task { [self] in
                    do {
                        try await refresh(response)
                        end(.success(()))
                    } catch {
                        end(.failure(error))
                    }
                }
            }
            return CredentialWait(stream: stream, continuation: continuation)
        }
    }

    /// Cancels the refresh that is running.
    func cancel() { state.withLock { $0.running }?.cancel() }

    private func end(_ outcome: Outcome) {
        let waiters = state.withLock { state in
            if case .success = outcome { state.generation += 1 }
            state.running = nil
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters {
            waiter.yield(outcome)
            waiter.finish()
        }
    }
}

/// A transfer's wait for a refresh of credentials.
struct CredentialWait: Sendable {
    fileprivate let stream: AsyncStream<CredentialRefresh.Outcome>
    fileprivate let continuation: AsyncStream<CredentialRefresh.Outcome>.Continuation

    /// Waits for the outcome; returns `nil` if ``leave()`` has ended the wait. Call this method only once.
    func outcome() async -> CredentialRefresh.Outcome? {
        for await outcome in stream { return outcome }
        return nil
    }

    /// Ends the wait. The refresh continues for other transfers.
    func leave() { continuation.finish() }
}
