import Glibc

extension FileDescriptor {
    /// Takes the exclusive lock of this open file description without waiting; false where another one holds it
    /// (flock(2)). It ends with this object, or with the process, however that ends.
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
    /// Whether another open file description holds the exclusive lock. Whoever looks at the same time sees the same; whoever
    /// tries to take it in this moment has to try again.
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
