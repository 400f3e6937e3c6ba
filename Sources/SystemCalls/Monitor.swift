import Glibc

/// State behind a lock, with a condition variable that threads can wait on (pthread_cond_wait(3)).
///
/// The lock is not recursive. Call ``notifyAll()`` or ``notifyOne()`` after a change that other threads may wait
/// for.
package final class Monitor<State>: @unchecked Sendable {
    // `state` is accessed only while `mutex` is locked. Mutex and condition stay at fixed addresses until `deinit`.
    private var state: State
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    package init(_ state: sending State) {
        self.state = state
        let mutexSize = MemoryLayout<pthread_mutex_t>.stride
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: mutexSize + MemoryLayout<pthread_cond_t>.stride, alignment: 16)
        mutex = memory.initializeMemory(as: pthread_mutex_t.self, to: pthread_mutex_t())
        condition = (memory + mutexSize).initializeMemory(as: pthread_cond_t.self, to: pthread_cond_t())
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(condition, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        // The memory of the condition follows that of the mutex in one allocation.
        UnsafeMutableRawPointer(mutex).deallocate()
    }

    /// Runs `body` while holding the lock.
    package func withLock<Result, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&state)
    }

    /// Waits until `attempt`, which runs with the lock held, returns a value; returns nil once the deadline has passed.
    ///
    /// - Parameter deadline: monotonic nanoseconds (``SystemClock/monotonicNanoseconds()``); nil waits forever.
    package func wait<Result>(
        until deadline: Int64? = nil, _ attempt: (inout State) -> Result?
    ) -> Result? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = attempt(&state) { return result }
            guard let deadline else {
                pthread_cond_wait(condition, mutex)
                continue
            }
            var time = timespec(
                tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
            if pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT { return attempt(&state) }
        }
    }

    /// Waits without limit until `attempt`, which runs with the lock held, returns a value.
    package func waitForever<Result>(_ attempt: (inout State) -> Result?) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = attempt(&state) { return result }
            pthread_cond_wait(condition, mutex)
        }
    }

    /// Wakes one waiting thread. Use it only if all threads wait for the same condition.
    package func notifyOne() {
        pthread_cond_signal(condition)
    }

    /// Wakes all waiting threads, which then check the state again.
    package func notifyAll() {
        pthread_cond_broadcast(condition)
    }
}
