import Synchronization
import SystemCalls

/// Runs work that blocks or takes long outside the threads that Swift's tasks share.
enum BlockingWork {
    /// Runs `work` on its own thread and waits for the result. If the system cannot start a thread, `work` runs on the
    /// caller's thread.
    static func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            do throws(Errno) {
                _ = try WorkerThread(name: "transfer-work") { continuation.resume(returning: work()) }
            } catch {
                continuation.resume(returning: work())
            }
        }
    }
}

/// A flag that requests work on another thread to stop.
final class StopFlag: Sendable {
    private let flag = Atomic(false)

    var isRaised: Bool { flag.load(ordering: .relaxed) }

    func raise() { flag.store(true, ordering: .relaxed) }
}
