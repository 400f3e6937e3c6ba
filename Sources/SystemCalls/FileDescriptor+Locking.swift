import Glibc

extension FileDescriptor {
    /// Acquires the exclusive lock of this open file description without waiting; returns false if another one holds it
    /// (flock(2)). The kernel releases the lock when this object is released or the process ends.
    package func tryLock() throws(Errno) -> Bool {
        do {
            _ = try retryingOnInterrupt { flock(rawValue, LOCK_EX | LOCK_NB) }
            isLocked.store(true, ordering: .relaxed)
            return true
        } catch {
            if error == .wouldBlock { return false }
            throw error
        }
    }
    /// Whether another open file description holds the exclusive lock. The check takes a shared lock for a moment, so a
    /// ``tryLock()`` of another process can fail at that moment.
    package func isLockedElsewhere() throws(Errno) -> Bool {
        do {
            _ = try retryingOnInterrupt { flock(rawValue, LOCK_SH | LOCK_NB) }
        } catch {
            if error == .wouldBlock { return true }
            throw error
        }
        _ = flock(rawValue, LOCK_UN)
        return false
    }
}
