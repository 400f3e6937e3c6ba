import Glibc

/// State behind a lock, with a condition variable that threads can wait on (pthread_cond_wait(3)).
///
/// The lock is not recursive. Call ``notifyAll()`` or ``notifyOne()`` after a change that other threads may wait
/// for.
package struct Monitor<State>: @unchecked Sendable {
    // The state, followed by mutex and condition, in one allocation. They stay at fixed addresses until `deinit`.
    private final class Storage: ManagedBuffer<State, UInt64> {
        deinit {
            pthread_cond_destroy(condition)
            pthread_mutex_destroy(mutex)
        }

        var mutex: UnsafeMutablePointer<pthread_mutex_t> {
            withUnsafeMutablePointerToElements {
                UnsafeMutableRawPointer($0).assumingMemoryBound(to: pthread_mutex_t.self)
            }
        }

        var condition: UnsafeMutablePointer<pthread_cond_t> {
            (UnsafeMutableRawPointer(mutex) + MemoryLayout<pthread_mutex_t>.stride)
                .assumingMemoryBound(to: pthread_cond_t.self)
        }

        static var size: Int { MemoryLayout<pthread_mutex_t>.stride + MemoryLayout<pthread_cond_t>.stride }
    }

    // The state is accessed only while the mutex is locked.
    private let storage: Storage

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

    private var mutex: UnsafeMutablePointer<pthread_mutex_t> { storage.mutex }
    private var condition: UnsafeMutablePointer<pthread_cond_t> { storage.condition }

    /// Runs `body` while holding the lock.
    package func withLock<Result, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&storage.header)
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
            if let result = attempt(&storage.header) { return result }
            guard let deadline else {
                pthread_cond_wait(condition, mutex)
                continue
            }
            var time = timespec(
                tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
            if pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT { return attempt(&storage.header) }
        }
    }

    /// Waits without limit until `attempt`, which runs with the lock held, returns a value.
    package func waitForever<Result>(_ attempt: (inout State) -> Result?) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = attempt(&storage.header) { return result }
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
