import Synchronization
import SystemCalls

/// Runs work that blocks or takes long outside the threads that Swift's tasks share.
enum BlockingWork {
    /// Runs `work` on its own thread and waits for the result. If the system cannot start a thread, `work` runs on the
    /// caller's thread.
    static func run<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
        do throws(Errno) {
            return try await WorkerThread.run(name: "transfer-work", work)
        } catch {
            return work()
        }
    }

    /// The same for work that can fail.
    static func run<Success: Sendable, Failure: Error>(
        _ work: @escaping @Sendable () throws(Failure) -> Success
    ) async throws(Failure) -> Success {
        try await run { Result { () throws(Failure) in try work() } }.get()
    }
}

/// A flag that requests work on another thread to stop.
final class StopFlag: Sendable {
    private let flag = Atomic(false)

    var isRaised: Bool { flag.load(ordering: .relaxed) }

    func raise() { flag.store(true, ordering: .relaxed) }

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
