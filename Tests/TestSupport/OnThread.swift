import SystemCalls

/// Runs a function that may block on a separate thread, because all tests share a few threads. The function belongs to the
/// task of the caller, so issues that it records are those of the running test.
package func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withTaskExecutorPreference(ThreadForEachJob.shared) { try body() }
}

/// Starts a thread for each job.
private final class ThreadForEachJob: TaskExecutor {
    static let shared = ThreadForEachJob()

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        do {
            _ = try WorkerThread(name: "test") {
                job.runSynchronously(on: Self.shared.asUnownedTaskExecutor())
            }
        } catch {
            // The task would wait forever.
            preconditionFailure("no thread: \(error)")
        }
    }
}
