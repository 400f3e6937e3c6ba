import SystemCalls

/// Runs work that blocks on a thread of its own, so that it does not hold one of the few that run all tests.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        do throws(Errno) {
            _ = try WorkerThread(name: "test") {
                continuation.resume(with: Swift.Result { try body() })
            }
        } catch {
            continuation.resume(throwing: error)
        }
    }
}
