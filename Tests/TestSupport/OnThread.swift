import SystemCalls

/// Runs a function that may block on a separate thread, because all tests share a few threads.
package func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
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
