import Synchronization
import SystemCalls

/// Runs work that blocks or takes long outside the threads that Swift's tasks share.
package enum BlockingWork {
    private static let threads = BlockingThreads()

    /// Runs `work` on a thread that runs nothing else meanwhile, and waits for the result. If the system cannot start a
    /// thread, `work` runs on the caller's thread.
    package static func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            start { continuation.resume(returning: work()) }
        }
    }

    /// Runs `work`, which can fail, as ``run(_:)`` does.
    static func run<Success: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> Success
    ) async throws(Failure) -> Success {
        try await run { Result { () throws(Failure) in try work() } }.get()
    }

    /// Runs `work` as ``run(_:)`` does, but does not wait for its end.
    package static func start(_ work: @escaping @Sendable () -> Void) { threads.run(work) }
}

/// Threads that run one piece of work after the other. A thread without work waits for some time before it ends, because
/// starting a thread takes longer than most work.
private final class BlockingThreads: Sendable {
    private struct State {
        var waiting: [@Sendable () -> Void] = []
        /// The number of threads that run no work. It is at least the number of pieces of work that wait.
        var idle = 0

        mutating func removeWork() -> (@Sendable () -> Void)? {
            guard !waiting.isEmpty else { return nil }
            idle -= 1
            return waiting.removeFirst()
        }
    }

    private static let idleTime: Int64 = 1_000_000_000

    private let state = Monitor(State())

    func run(_ work: @escaping @Sendable () -> Void) {
        let hasThread = state.withLock { state in
            state.waiting.append(work)
            if state.idle < state.waiting.count {
                state.idle += 1
                return false
            }
            return true
        }
        if hasThread { return state.notifyOne() }
        do throws(Errno) {
            _ = try WorkerThread(name: "transfer-work") { [self] in
                while let work = next() {
                    work()
                    state.withLock { $0.idle += 1 }
                }
            }
        } catch {
            let work = state.withLock { state in
                state.idle -= 1
                return state.waiting.popLast()
            }
            work?()
        }
    }

    /// Waits for work. The thread is idle until there is work.
    /// - Returns: `nil` if the thread is not needed any more.
    private func next() -> (@Sendable () -> Void)? {
        let work = state.wait(until: SystemClock.monotonicNanoseconds() + Self.idleTime) { state in
            state.removeWork()
        }
        if let work { return work }
        return state.withLock { state in
            if let work = state.removeWork() { return work }
            state.idle -= 1
            return nil
        }
    }
}

/// A flag that requests work on another thread to stop.
package final class StopFlag: Sendable {
    private let flag = Atomic(false)

    package init() {}

    package var isRaised: Bool { flag.load(ordering: .relaxed) }

    package func raise() { flag.store(true, ordering: .relaxed) }

    /// Reads the first `size` bytes of something in portions, and passes them to `body`.
    /// - Parameter read: reads at least one byte at an offset, or throws.
    /// - Returns: false if the flag was raised before the end.
    func readAll<Failure: Error>(
        _ size: Int64, _ read: (UnsafeMutableRawBufferPointer, Int64) throws(Failure) -> Int,
        body: (UnsafeRawBufferPointer) -> Void
    ) throws(Failure) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 1)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < size {
            if isRaised { return false }
            let wanted = Int(min(Int64(buffer.count), size - offset))
            let count = try read(UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), offset)
            body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        return true
    }
}
