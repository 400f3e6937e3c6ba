import Synchronization
import SystemCalls

/// Work that blocks or takes long, kept off the threads that Swift's tasks share.
enum BlockingWork {
    /// Runs `work` on a thread of its own and waits for it; on the caller's thread if the system has no thread.
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

/// Asks work on another thread to stop.
final class StopFlag: Sendable {
    private let flag = Atomic(false)

    var isRaised: Bool { flag.load(ordering: .relaxed) }

    func raise() { flag.store(true, ordering: .relaxed) }
}
