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
    ///   - shouldYield: see ``setYieldsToOthers(_:)``.
    package init(
        name: String, shouldYield: Bool = false, _ body: @escaping @Sendable () -> Void
    ) throws(Errno) {
        let start = Unmanaged.passRetained(
            Start(name: name, shouldYield: shouldYield, body: body, finished: finished))
        var handle = pthread_t()
        let error = pthread_create(&handle, nil, runWorkerThread, start.toOpaque())
        guard error == 0 else {
            start.release()
            throw Errno(rawValue: error)
        }
        pthread_detach(handle)
        self.handle = handle
    }

    /// Lets other threads that are ready run before the current thread continues (sched_yield(2)). Returns at once if
    /// there are none.
    package static func yieldProcessor() { _ = sched_yield() }

    /// Sets whether the current thread yields to others (`SCHED_BATCH`, sched(7)). If it does, it does not preempt
    /// other threads when it wakes up, and since Linux 6.12 its longer turns let other threads that wake up preempt it.
    ///
    /// An error is ignored: the thread works with the default policy, too. If the operator has chosen another policy for
    /// the process, all threads keep it.
    package static func setYieldsToOthers(_ yields: Bool) {
        let policy = yields ? Int32(ONWARD_SCHED_BATCH) : SCHED_OTHER
        guard hasDefaultPolicy, sched_getscheduler(0) != policy else { return }
        _ = onward_set_scheduling(UInt32(policy), yields ? longTurn : 0)
    }

    /// Whether the main thread has the default policy. Its policy does not change.
    private static let hasDefaultPolicy = sched_getscheduler(getpid()) == SCHED_OTHER

    /// The maximum time in nanoseconds for which a thread that yields to others runs before others with the same turns.
    private static let longTurn: UInt64 = 20_000_000

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
    let shouldYield: Bool
    let body: @Sendable () -> Void
    let finished: Monitor<Bool>

    init(name: String, shouldYield: Bool, body: @escaping @Sendable () -> Void, finished: Monitor<Bool>) {
        self.name = name
        self.shouldYield = shouldYield
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
    // A thread inherits the policy of the thread that creates it.
    WorkerThread.setYieldsToOthers(start.shouldYield)
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

/// State behind a lock, with a condition variable that threads can wait on (pthread_cond_wait(3)).
///
/// The methods are inlinable, so that they are specialized for the state in other modules. The compiler does that only if
/// the type is also `@usableFromInline`.
///
/// The lock is not recursive. Call ``notifyAll()`` or ``notifyOne()`` after a change that other threads may wait
/// for.
@usableFromInline
package struct Monitor<State>: @unchecked Sendable {
    // The state, followed by mutex and condition, in one allocation. They stay at fixed addresses until `deinit`.
    @usableFromInline
    package final class Storage: ManagedBuffer<State, UInt64> {
        deinit {
            pthread_cond_destroy(condition)
            pthread_mutex_destroy(mutex)
        }

        @inlinable
        package var mutex: UnsafeMutablePointer<pthread_mutex_t> {
            withUnsafeMutablePointerToElements {
                UnsafeMutableRawPointer($0).assumingMemoryBound(to: pthread_mutex_t.self)
            }
        }

        @inlinable
        package var condition: UnsafeMutablePointer<pthread_cond_t> {
            (UnsafeMutableRawPointer(mutex) + MemoryLayout<pthread_mutex_t>.stride)
                .assumingMemoryBound(to: pthread_cond_t.self)
        }

        @inlinable
        package static var size: Int {
            MemoryLayout<pthread_mutex_t>.stride + MemoryLayout<pthread_cond_t>.stride
        }
    }

    // The state is accessed only while the mutex is locked.
    @usableFromInline
    package let storage: Storage

    @inlinable
    package init(_ state: sending State) {
        let storage = Storage.create(minimumCapacity: Storage.size / MemoryLayout<UInt64>.stride) { _ in state }
        self.storage = unsafeDowncast(storage, to: Storage.self)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    @inlinable
    package var mutex: UnsafeMutablePointer<pthread_mutex_t> { storage.mutex }
    @inlinable
    package var condition: UnsafeMutablePointer<pthread_cond_t> { storage.condition }
    /// Swift would check each access to a property of an object for exclusivity, which the lock ensures already.
    @inlinable
    package var state: UnsafeMutablePointer<State> { storage.withUnsafeMutablePointerToHeader { $0 } }

    /// Runs `body` while holding the lock.
    @inlinable
    package func withLock<Result, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state.pointee)
    }

    /// Waits until `attempt`, which runs with the lock held, returns a value; returns nil once the deadline has passed.
    ///
    /// - Parameter deadline: monotonic nanoseconds (``SystemClock/monotonicNanoseconds()``); nil waits forever.
    @inlinable
    package func wait<Result, Failure: Error>(
        until deadline: Int64? = nil, _ attempt: (inout State) throws(Failure) -> Result?
    ) throws(Failure) -> Result? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = try attempt(&state.pointee) { return result }
            guard let deadline else {
                pthread_cond_wait(condition, mutex)
                continue
            }
            var time = timespec(
                tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
            if pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT { return try attempt(&state.pointee) }
        }
    }

    /// Waits without limit until `attempt`, which runs with the lock held, returns a value.
    @inlinable
    package func waitForever<Result, Failure: Error>(
        _ attempt: (inout State) throws(Failure) -> Result?
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = try attempt(&state.pointee) { return result }
            pthread_cond_wait(condition, mutex)
        }
    }

    /// Wakes one waiting thread. Use it only if all threads wait for the same condition.
    @inlinable
    package func notifyOne() {
        pthread_cond_signal(condition)
    }

    /// Wakes all waiting threads, which then check the state again.
    @inlinable
    package func notifyAll() {
        pthread_cond_broadcast(condition)
    }
}

/// The stack of the current thread.
package enum ThreadStack {
    /// The bytes below the current frame that are kept, for the frames of the calls in ``releaseUnused()``.
    private static let margin: UInt = 4096

    /// Gives the memory that earlier, deeper calls have used back to the system (madvise(2)). Call this function before a
    /// long wait, on a thread that was started by pthread_create(3).
    package static func releaseUnused() {
        var attributes = pthread_attr_t()
        guard pthread_getattr_np(pthread_self(), &attributes) == 0 else { return }
        defer { pthread_attr_destroy(&attributes) }
        var start: UnsafeMutableRawPointer?
        var size = 0
        guard pthread_attr_getstack(&attributes, &start, &size) == 0, let start else { return }
        let current = withUnsafeMutablePointer(to: &size) { UInt(bitPattern: $0) }
        let lowest = UInt(bitPattern: start)
        // Under a sanitizer, variables may be outside the stack.
        guard current > lowest + margin, current < lowest + UInt(size) else { return }
        let page = UInt(sysconf(Int32(_SC_PAGESIZE)))
        let end = (current - margin) & ~(page - 1)
        if end > lowest { madvise(start, Int(end - lowest), MADV_DONTNEED) }
    }
}
