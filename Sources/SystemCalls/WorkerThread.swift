import CLinux
import Glibc

/// A thread that runs one function and can be joined.
package final class WorkerThread: Sendable {
    private let handle: pthread_t
    private let finished = Monitor(false)

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - name: up to 15 bytes, shown by debuggers and `top`.
    ///   - yieldsToOthers: whether the thread does not preempt other threads when it wakes up (`SCHED_BATCH`,
    ///     sched(7)).
    package init(
        name: String, yieldsToOthers: Bool = false, _ body: @escaping @Sendable () -> Void
    ) throws(Errno) {
        let start = Unmanaged.passRetained(
            Start(name: name, yieldsToOthers: yieldsToOthers, body: body, finished: finished))
        var handle = pthread_t()
        let error = pthread_create(&handle, nil, runWorkerThread, start.toOpaque())
        guard error == 0 else {
            start.release()
            throw Errno(rawValue: error)
        }
        pthread_detach(handle)
        self.handle = handle
    }

    /// Waits until the function has returned and its context is released. If the thread itself calls `join()`, it
    /// returns immediately.
    package func join() {
        if pthread_equal(pthread_self(), handle) != 0 { return }
        finished.waitForever { $0 ? () : nil }
    }
}

/// The arguments of the new thread.
private final class Start: Sendable {
    let name: String
    let yieldsToOthers: Bool
    let body: @Sendable () -> Void
    let finished: Monitor<Bool>

    init(name: String, yieldsToOthers: Bool, body: @escaping @Sendable () -> Void, finished: Monitor<Bool>) {
        self.name = name
        self.yieldsToOthers = yieldsToOthers
        self.body = body
        self.finished = finished
    }
}

private func runWorkerThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let finished = runBody(argument)
    finished.withLock { $0 = true }
    finished.notifyAll()
    return nil
}

/// This function is separate so that the context of `body` is released when this function returns, before `join()`
/// returns.
@inline(never)
private func runBody(_ argument: UnsafeMutableRawPointer) -> Monitor<Bool> {
    let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
    pthread_setname_np(pthread_self(), String(decoding: start.name.utf8.prefix(15), as: UTF8.self))
    if start.yieldsToOthers {
        // An error is ignored: the thread works with the default policy, too.
        var parameter = sched_param(sched_priority: 0)
        pthread_setschedparam(pthread_self(), Int32(ONWARD_SCHED_BATCH), &parameter)
    }
    start.body()
    return start.finished
}

extension WorkerThread {
    /// Runs `body`, which may block, on a new thread, so that no thread of the cooperative pool is blocked.
    package static func run<Value: Sendable>(
        name: String, _ body: @escaping @Sendable () -> Value
    ) async throws(Errno) -> Value {
        let result: Result<Value, Errno> = await withCheckedContinuation { continuation in
            do throws(Errno) {
                _ = try WorkerThread(name: name) { continuation.resume(returning: .success(body())) }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        return try result.get()
    }
}
